//! `count_equal`: counts equal integers of two tensors.

mod cases;

use ggml_format::GgmlType;

use crate::call::{A, B, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::Op;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "count_equal",
    template: template!("count_equal/count_equal.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Vec::new,
    ggml: &["COUNT_EQUAL"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct CountEqual {
    /// Integers, i32.
    pub a: Tensor,
    /// The same number of integers.
    pub b: Tensor,
    /// One i64.
    pub y: Tensor,
}

impl CountEqual {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let CountEqual { a, b, y } = self;
        for (what, t) in [("a", a), ("b", b)] {
            t.check_type(OP.name, what, GgmlType::I32)?;
            t.check_ne(OP.name, what, a.ne)?;
        }
        y.check_type(OP.name, "y", GgmlType::I64)?;
        y.check_ne(OP.name, "y", [1; 4])?;
        Call { op: &OP, variant: &[], sources: &[(A, a), (B, b)], y, constants: vec![] }.threads(1, caps)
    }
}
