//! `set`: a copy of a in which b replaces a view.
//!
//! In place it is a copy of b into that view of y: [`Cpy`](super::cpy::Cpy).

mod cases;

use crate::call::{A, B, C, Call, Unit};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "set",
    template: template!("set/set.wgsl.jinja"),
    variants: Unit::variants,
    cases: Op::cases(cases::by_hand),
    ggml: &["SET"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// The input.
    pub a: Tensor,
    /// The replacement.
    pub b: Tensor,
    /// The view: b's sizes, and strides and offset in values of y in ggml's order.
    pub view: Tensor,
    /// The result, of the sizes of a; all are of one type.
    pub y: Tensor,
}

/// Checks common to `set` and `acc`.
pub(crate) fn check(op: &'static str, [a, b, view, y]: [&Tensor; 4]) -> Result<(), DispatchError> {
    for (what, t) in [("a", a), ("b", b), ("the view", view)] {
        t.check_type(op, what, y.ty)?;
    }
    a.check_ne(op, "a", y.ne)?;
    b.check_ne(op, "b", view.ne)?;
    if view.n_alloc != y.n_elem() {
        let expected = format!("of a buffer of {} values, which y has", y.n_elem());
        return Err(DispatchError::Shape { op, what: "the view", expected, found: view.n_alloc.into() });
    }
    view.check_written(op, "the view")
}

impl Set {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        check(OP.name, [&self.a, &self.b, &self.view, &self.y])?;
        Call {
            op: &OP,
            variant: &[Value::Word(Unit::of(self.y.ty).word())],
            sources: &[(A, &self.a), (B.or_empty(), &self.b), (C.or_empty(), &self.view)],
            y: &self.y,
            constants: vec![],
        }
        .moves(caps)
    }
}
