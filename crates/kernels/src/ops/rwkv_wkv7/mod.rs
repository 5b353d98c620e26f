//! `rwkv_wkv7`: the time mixing of RWKV-7.

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
    /// What is read of the state.
    pub r: Tensor,
    /// Decay, from 0 to 1.
    pub w: Tensor,
    /// Keys.
    pub k: Tensor,
    /// Values.
    pub v: Tensor,
    /// What of the state is replaced.
    pub a: Tensor,
    /// By what it is replaced.
    pub b: Tensor,
    /// States: rows of the matrix of values by keys, heads, sequences.
    pub s: Tensor,
    /// The sizes of v, then those of s, in one row without gaps.
    pub y: Tensor,
}

impl RwkvWkv7 {
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
        for (what, t) in
            [("r", &self.r), ("w", &self.w), ("k", &self.k), ("v", &self.v), ("a", &self.a), ("b", &self.b)]
        {
            t.check_ne(op, what, [s, heads, tokens, 1])?;
        }
        self.s.check_ne(op, "s", [s, s, heads, n_seq])?;
        State::check_y(op, &self.y, self.n_out())?;
        let sources = [
            (R, &self.r),
            (W, &self.w),
            (K, &self.k),
            (V, &self.v),
            (A, &self.a),
            (B, &self.b),
            (S, &self.s),
        ];
        check_f32(op, &sources, &self.y)?;
        let state = State { s, rows: s, heads, n_tok: tokens / n_seq, n_seq, n_snap: 1 };
        let (constants, groups, why) = state.plan(op, caps)?;
        Call { op: &OP, variant: &[Value::Word(caps.set().word())], sources: &sources, y: &self.y, constants }
            .groups(groups, why, caps)
    }
}
