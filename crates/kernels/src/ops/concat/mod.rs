//! `concat`: concatenates two tensors along an axis.

mod cases;

use crate::call::{A, B, Call, Unit};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "concat",
    template: template!("concat/concat.wgsl.jinja"),
    variants: Unit::variants,
    cases: Op::cases(cases::by_hand),
    ggml: &["CONCAT"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Concat {
    /// The first part.
    pub a: Tensor,
    /// The second part: sizes equal except along `dim`.
    pub b: Tensor,
    /// The result, of the same type.
    pub y: Tensor,
    /// The axis.
    pub dim: usize,
}

impl Concat {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if the parts do not add up to y.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let mut ne = self.a.ne;
        for (what, t) in [("a", &self.a), ("b", &self.b)] {
            t.check_type(OP.name, what, self.y.ty)?;
        }
        ne[self.dim] = self.b.ne[self.dim];
        self.b.check_ne(OP.name, "b", ne)?;
        ne[self.dim] += self.a.ne[self.dim];
        self.y.check_ne(OP.name, "y", ne)?;
        Call {
            op: &OP,
            variant: &[Value::Word(Unit::of(self.y.ty).word())],
            sources: &[(A.or_empty(), &self.a), (B.or_empty(), &self.b)],
            y: &self.y,
            constants: vec![("DIM", self.dim as f64)],
        }
        .moves(caps)
    }
}
