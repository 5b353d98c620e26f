//! `solve_tri`: triangular solves, for the chunked form of the delta rule.

mod cases;
pub mod reference;

use crate::call::{A, B, Call, check_f32};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::Op;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "solve_tri",
    template: template!("solve_tri/solve_tri.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Vec::new,
    ggml: &["SOLVE_TRI"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call; all tensors are f32.
#[derive(Clone, Copy, Debug)]
pub struct SolveTri {
    /// Square lower triangular matrices; entries above the diagonal are not read.
    pub a: Tensor,
    /// Right-hand sides.
    pub b: Tensor,
    /// Solutions, of the sizes of b.
    pub y: Tensor,
}

impl SolveTri {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match or values overlap, [`DispatchError::Type`] if they are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let [m, n, ne2, ne3] = self.y.ne;
        self.a.check_ne(OP.name, "a", [n, n, ne2, ne3])?;
        self.b.check_ne(OP.name, "b", self.y.ne)?;
        let sources = [(A, &self.a), (B, &self.b)];
        check_f32(OP.name, &sources, &self.y)?;
        Call { op: &OP, variant: &[], sources: &sources, y: &self.y, constants: vec![] }
            .threads(m.saturating_mul(ne2).saturating_mul(ne3), caps)
    }
}
