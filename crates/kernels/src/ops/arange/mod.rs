//! `arange`: evenly spaced numbers.

mod cases;

use crate::call::Call;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "arange",
    template: template!("arange/arange.wgsl.jinja"),
    variants: || ["f32", "f16", "bf16"].iter().map(|ty| vec![("ty", Value::Word(ty))]).collect(),
    cases: Vec::new,
    ggml: &["ARANGE"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Arange {
    /// The first number.
    pub start: f32,
    /// The increment.
    pub step: f32,
    /// The output.
    pub y: Tensor,
}

impl Arange {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if values overlap; [`DispatchError::NoKernel`] for types that are no floats.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        Call {
            op: &OP,
            variant: &[Value::Word(self.y.ty.name())],
            sources: &[],
            y: &self.y,
            constants: vec![("START", self.start.into()), ("STEP", self.step.into())],
        }
        .values(caps)
    }
}
