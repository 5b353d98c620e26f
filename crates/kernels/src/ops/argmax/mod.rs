//! `argmax`: greedy choice of the next token of every row of logits, in two dispatches, and the largest value of every row of a tensor.

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
    /// What it reads, f32.
    pub a: Tensor,
    /// What it writes, i32: the sizes of a without the first.
    pub y: Tensor,
}

impl ArgmaxRows {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not fit, [`DispatchError::Type`] for other types.
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
        .groups(rows, "256 threads a row".into(), caps)
    }
}

/// A call: first [`Argmax::chunk`], then [`Argmax::join`].
#[derive(Clone, Copy, Debug)]
pub struct Argmax {
    /// Values a row.
    pub k: u32,
    /// Values from row to row.
    pub ld: u32,
    /// Rows at most.
    pub n_row: u32,
    /// Where the step has what is chosen.
    pub choice: Choice,
}

/// Values that one workgroup looks at.
const CHUNK: u32 = 2048;

impl Argmax {
    /// Chunks of a row, each with two words of result.
    pub fn n_part(&self) -> u32 {
        self.k.div_ceil(CHUNK)
    }

    /// Leaves the best of every chunk; rows are in grid.y.
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
        let why = format!("{CHUNK} logits a workgroup");
        dispatch(&OP, &[Value::Word("chunk")], constants, [self.n_part(), self.n_row, 1], why)
    }

    /// Joins the chunks and advances the step; rows are in grid.x.
    ///
    /// # Errors
    /// [`DispatchError::NoKernel`] if the kernel was not rendered.
    pub fn join(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let mut constants = vec![("WG", caps.tree_threads()), ("N_PART", self.n_part().into())];
        constants.extend(self.choice.constants());
        dispatch(&OP, &[Value::Word("final")], constants, [self.n_row, 1, 1], "one workgroup a row".into())
    }
}
