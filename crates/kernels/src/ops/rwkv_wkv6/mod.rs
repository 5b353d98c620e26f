//! `rwkv_wkv6`: the time mixing of RWKV-6.

mod cases;
mod reference;

use crate::call::{Call, Names, check_f32, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::state::State;
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
    /// What is read of the state.
    pub r: Tensor,
    /// How much the token itself counts (`time_faaaa`): sizes of a head, heads.
    pub tf: Tensor,
    /// Decay, from 0 to 1.
    pub td: Tensor,
    /// States: columns of the matrix of keys by values, whose values lie a row apart, heads, sequences.
    pub s: Tensor,
    /// The sizes of v, then those of s, in one row without gaps.
    pub y: Tensor,
}

impl RwkvWkv6 {
    /// Values of y.
    pub fn n_out(&self) -> u32 {
        self.v.n_elem() + self.s.n_elem()
    }

    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not fit, [`DispatchError::Type`] if they are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let op = OP.name;
        let [s, heads, tokens, _] = self.v.ne;
        let n_seq = self.s.ne[3];
        if n_seq == 0 || tokens % n_seq != 0 {
            let expected = format!("a multiple of {n_seq} sequences");
            return Err(DispatchError::Shape { op, what: "tokens", expected, found: tokens.into() });
        }
        for (what, t) in [("k", &self.k), ("v", &self.v), ("r", &self.r), ("td", &self.td)] {
            t.check_ne(op, what, [s, heads, tokens, 1])?;
        }
        self.tf.check_ne(op, "tf", [s, heads, 1, 1])?;
        self.s.check_ne(op, "s", [s, s, heads, n_seq])?;
        State::check_y(op, &self.y, self.n_out())?;
        let sources =
            [(K, &self.k), (V, &self.v), (R, &self.r), (TF, &self.tf), (TD, &self.td), (S, &self.s)];
        check_f32(op, &sources, &self.y)?;
        let state = State { s, rows: s, heads, n_tok: tokens / n_seq, n_seq, n_snap: 1 };
        let (constants, groups, why) = state.plan(op, caps)?;
        Call { op: &OP, variant: &[Value::Word(caps.set().word())], sources: &sources, y: &self.y, constants }
            .groups(groups, why, caps)
    }
}
