//! `rwkv_wkv6`: the time mixing of RWKV-6.

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
    name: "rwkv_wkv6",
    template: template!("rwkv_wkv6/rwkv_wkv6.wgsl.jinja"),
    variants: || ["base", "sg"].iter().map(|s| vec![("set", Value::Word(s))]).collect(),
    cases: Op::cases(cases::by_hand),
    ggml: &["RWKV_WKV6"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

const K: Names = names!("k");
const V: Names = names!("v");
const R: Names = names!("r");
const TF: Names = names!("tf");
const TD: Names = names!("td");
const S: Names = names!("s");

/// A call; all tensors are f32. Sizes are those of a head, heads, tokens of all sequences.
#[derive(Clone, Copy, Debug)]
pub struct RwkvWkv6 {
    /// Keys.
    pub k: Tensor,
    /// Values.
    pub v: Tensor,
    /// Receptance, the read vector of the state.
    pub r: Tensor,
    /// Bonus of the current token (`time_faaaa`): sizes of a head, heads.
    pub tf: Tensor,
    /// Decay, from 0 to 1.
    pub td: Tensor,
    /// States: columns of the key-by-value matrix, strided by a row, heads, sequences.
    pub s: Tensor,
    /// The sizes of v, then those of s, contiguous in one row.
    pub y: Tensor,
}

impl RwkvWkv6 {
    /// Values of y.
    pub fn n_out(&self) -> u32 {
        n_out(&self.v, &self.s)
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] if they are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let [s, heads, ..] = self.v.ne;
        self.tf.check_ne(OP.name, "tf", [s, heads, 1, 1])?;
        MatrixState {
            tokens: &[(K, &self.k), (V, &self.v), (R, &self.r), (TD, &self.td)],
            others: &[(TF, &self.tf)],
            s: (S, &self.s),
            y: &self.y,
            constants: &[],
        }
        .dispatch(&OP, caps)
    }
}
