//! `gated_linear_attn`: linear attention with one decay per channel.

mod cases;
mod reference;

use crate::call::{Names, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::matrix_state::{MatrixState, n_out};
use crate::op::{Op, Value};

use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "gated_linear_attn",
    template: template!("gated_linear_attn/gated_linear_attn.wgsl.jinja"),
    variants: || ["base", "sg"].iter().map(|s| vec![("set", Value::Word(s))]).collect(),
    cases: Op::cases(cases::by_hand),
    ggml: &["GATED_LINEAR_ATTN"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

const K: Names = names!("k");
const V: Names = names!("v");
const Q: Names = names!("q");
const G: Names = names!("g");
const S: Names = names!("s");

/// A call; all tensors are f32. Sizes are those of a head, heads, tokens of all sequences.
#[derive(Clone, Copy, Debug)]
pub struct GatedLinearAttn {
    /// Keys.
    pub k: Tensor,
    /// Values.
    pub v: Tensor,
    /// Queries.
    pub q: Tensor,
    /// Decay, from 0 to 1.
    pub g: Tensor,
    /// States: columns of the key-by-value matrix, strided by a row, heads, sequences.
    pub s: Tensor,
    /// Multiplies y.
    pub scale: f32,
    /// The sizes of v, then those of s, contiguous in one row.
    pub y: Tensor,
}

impl GatedLinearAttn {
    /// Values of y.
    pub fn n_out(&self) -> u32 {
        n_out(&self.v, &self.s)
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] if they are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        MatrixState {
            tokens: &[(K, &self.k), (V, &self.v), (Q, &self.q), (G, &self.g)],
            others: &[],
            s: (S, &self.s),
            y: &self.y,
            constants: &[("SCALE", self.scale.into())],
        }
        .dispatch(&OP, caps)
    }
}
