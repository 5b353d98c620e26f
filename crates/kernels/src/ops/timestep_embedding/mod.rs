//! `timestep_embedding`: sinusoidal embedding of numbers, with periods from one to a maximum.

mod cases;
pub mod reference;

use ggml_format::GgmlType;

use crate::call::{A, Call};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::Op;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "timestep_embedding",
    template: template!("timestep_embedding/timestep_embedding.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Vec::new,
    ggml: &["TIMESTEP_EMBEDDING"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct TimestepEmbedding {
    /// The numbers, f32, along axis 0.
    pub a: Tensor,
    /// One row per number, f32.
    pub y: Tensor,
    /// The longest period, over 2 pi.
    pub max_period: f32,
}

impl TimestepEmbedding {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] or [`DispatchError::Type`] if sizes or types do not match.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let TimestepEmbedding { a, y, max_period } = self;
        a.check_type(OP.name, "a", GgmlType::F32)?;
        y.check_type(OP.name, "y", GgmlType::F32)?;
        y.check_ne(OP.name, "y", [y.ne[0], a.ne[0], 1, 1])?;
        let constants = vec![("DIM", y.ne[0].into()), ("LOG_PERIOD", f64::from(*max_period).ln())];
        Call { op: &OP, variant: &[], sources: &[(A, a)], y, constants }.values(caps)
    }
}
