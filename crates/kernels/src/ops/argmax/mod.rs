//! `argmax`: greedy choice of the next token of every row of logits, in two dispatches, and the largest value of every
//! row of a tensor.

mod cases;

use ggml_format::GgmlType;

use crate::call::{A, Call, dispatch};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::step::Choice;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "argmax",
    template: template!("argmax/argmax.wgsl.jinja"),
    variants: || ["chunk", "final", "row"].iter().map(|p| vec![("part", Value::Word(p))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &["ARGMAX"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// The largest value of every row, the first of equals.
#[derive(Clone, Copy, Debug)]
pub struct ArgmaxRows {
    /// Input, f32.
    pub a: Tensor,
    /// Output, i32: the sizes of a without the first.
    pub y: Tensor,
}

impl ArgmaxRows {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let [_, ne1, ne2, ne3] = self.a.ne;
        self.a.check_type(OP.name, "a", GgmlType::F32)?;
        self.y.check_type(OP.name, "y", GgmlType::I32)?;
        self.y.check_ne(OP.name, "y", [ne1, ne2, ne3, 1])?;
        let rows = self.y.n_elem();
        Call {
            op: &OP,
            variant: &[Value::Word("row")],
            sources: &[(A, &self.a)],
            y: &self.y,
            constants: vec![("ROWS", rows.into())],
        }
        .groups(rows, "256 threads per row".into(), caps)
    }
}

/// A call: first [`Argmax::chunk`], then [`Argmax::join`].
#[derive(Clone, Copy, Debug)]
pub struct Argmax {
    /// Values per row.
    pub k: u32,
    /// Row stride, in values.
    pub ld: u32,
    /// Maximum number of rows.
    pub n_row: u32,
    /// Location of chosen tokens in the step buffer.
    pub choice: Choice,
}

/// Values per workgroup.
const CHUNK: u32 = 2048;

impl Argmax {
    /// Chunks per row; each produces two words.
    pub fn n_part(&self) -> u32 {
        self.k.div_ceil(CHUNK)
    }

    /// Finds the maximum of every chunk; rows are in grid.y.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn chunk(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let constants = vec![
            ("WG", caps.tree_threads()),
            ("K", self.k.into()),
            ("LD", self.ld.into()),
            ("CHUNK", CHUNK.into()),
            ("N_PART", self.n_part().into()),
        ];
        let why = format!("{CHUNK} logits per workgroup");
        dispatch(&OP, &[Value::Word("chunk")], constants, [self.n_part(), self.n_row, 1], why)
    }

    /// Reduces the chunks and advances the step; rows are in grid.x.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn join(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let mut constants = vec![("WG", caps.tree_threads()), ("N_PART", self.n_part().into())];
        constants.extend(self.choice.constants());
        dispatch(&OP, &[Value::Word("final")], constants, [self.n_row, 1, 1], "one workgroup a row".into())
    }
}
