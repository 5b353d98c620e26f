//! `acc`: a copy of a, with b added to a view of it.
//!
//! In place it is a sum over that view of y: [`BinaryNd`](super::binary::BinaryNd).

mod cases;
pub mod reference;

use super::set::check;
use crate::call::{A, B, C, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "acc",
    template: template!("acc/acc.wgsl.jinja"),
    variants: || ["f32", "f16", "bf16"].iter().map(|ty| vec![("ty", Value::Word(ty))]).collect(),
    cases: Op::cases(cases::by_hand),
    ggml: &["ACC"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Acc {
    /// The input.
    pub a: Tensor,
    /// The addend.
    pub b: Tensor,
    /// The view: b's sizes, and strides and offset in values of y in ggml's order.
    pub view: Tensor,
    /// The result, of the sizes of a; all are of one type.
    pub y: Tensor,
}

impl Acc {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        check(OP.name, [&self.a, &self.b, &self.view, &self.y])?;
        Call {
            op: &OP,
            variant: &[Value::Word(self.y.ty.name())],
            sources: &[(A, &self.a), (B.or_empty(), &self.b), (C.or_empty(), &self.view)],
            y: &self.y,
            constants: vec![],
        }
        .values(caps)
    }
}
