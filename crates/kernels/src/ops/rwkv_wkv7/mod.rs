//! `rwkv_wkv7`: the time mixing of RWKV-7.

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
    name: "rwkv_wkv7",
    template: template!("rwkv_wkv7/rwkv_wkv7.wgsl.jinja"),
    variants: || ["base", "sg"].iter().map(|s| vec![("set", Value::Word(s))]).collect(),
    cases: Op::cases(cases::by_hand),
    ggml: &["RWKV_WKV7"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

const R: Names = names!("r");
const W: Names = names!("w");
const K: Names = names!("k");
const V: Names = names!("v");
const A: Names = names!("a");
const B: Names = names!("b");
const S: Names = names!("s");

/// A call; all tensors are f32. Sizes are those of a head, heads, tokens of all sequences.
#[derive(Clone, Copy, Debug)]
pub struct RwkvWkv7 {
    /// Receptance, the read vector of the state.
    pub r: Tensor,
    /// Decay, from 0 to 1.
    pub w: Tensor,
    /// Keys.
    pub k: Tensor,
    /// Values.
    pub v: Tensor,
    /// Direction of the state to remove.
    pub a: Tensor,
    /// Its replacement.
    pub b: Tensor,
    /// States: rows of the value-by-key matrix, heads, sequences.
    pub s: Tensor,
    /// The sizes of v, then those of s, contiguous in one row.
    pub y: Tensor,
}

impl RwkvWkv7 {
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
            tokens: &[(R, &self.r), (W, &self.w), (K, &self.k), (V, &self.v), (A, &self.a), (B, &self.b)],
            others: &[],
            s: (S, &self.s),
            y: &self.y,
            constants: &[],
        }
        .dispatch(&OP, caps)
    }
}
