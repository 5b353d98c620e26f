//! `cumsum`: prefix sums along rows of any length.

mod cases;
pub mod reference;

use ggml_format::GgmlType;

use crate::call::{A, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, Step};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "cumsum",
    template: template!("cumsum/cumsum.wgsl.jinja"),
    variants: || ["sum", "scan", "row"].iter().map(|p| vec![("part", Value::Word(p))]).collect(),
    cases: Op::cases(cases::by_hand),
    ggml: &["CUMSUM"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Cumsum {
    /// Input, f32.
    pub a: Tensor,
    /// Output, f32.
    pub y: Tensor,
}

/// Values per chunk.
const CHUNK: u32 = 2048;

impl Cumsum {
    /// Bytes of the buffer `parts`; 0 if it needs none.
    pub fn scratch_bytes(&self) -> u64 {
        let n = u64::from(self.a.ne[0].div_ceil(CHUNK));
        if n > 1 { n * u64::from(self.a.n_row()) * 4 } else { 0 }
    }

    /// Chooses the kernels, in order.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes differ or values overlap, [`DispatchError::Type`] if they are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Vec<Step>, DispatchError> {
        self.a.check_type(OP.name, "a", GgmlType::F32)?;
        self.y.check_type(OP.name, "y", GgmlType::F32)?;
        self.a.check_ne(OP.name, "a", self.y.ne)?;
        if self.scratch_bytes() == 0 {
            return Ok(self.part("row", caps)?.into());
        }
        Ok(vec![self.part("sum", caps)?.into(), self.part("scan", caps)?.into()])
    }

    fn part(&self, part: &'static str, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let n_chunk = self.a.ne[0].div_ceil(CHUNK).max(1);
        Call {
            op: &OP,
            variant: &[Value::Word(part)],
            sources: &[(A, &self.a)],
            y: &self.y,
            constants: vec![("N_CHUNK", n_chunk.into()), ("ROWS", self.a.n_row().into())],
        }
        .groups(
            n_chunk.saturating_mul(self.a.n_row()),
            format!("{CHUNK} values per workgroup"),
            caps,
        )
    }
}
