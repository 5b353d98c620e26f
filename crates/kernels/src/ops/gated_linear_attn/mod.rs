//! `gated_linear_attn`: linear attention with a decay for each channel.

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
    /// States: columns of the matrix of keys by values, whose values lie a row apart, heads, sequences.
    pub s: Tensor,
    /// Multiplies y.
    pub scale: f32,
    /// The sizes of v, then those of s, in one row without gaps.
    pub y: Tensor,
}

impl GatedLinearAttn {
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
        for (what, t) in [("k", &self.k), ("v", &self.v), ("q", &self.q), ("g", &self.g)] {
            t.check_ne(op, what, [s, heads, tokens, 1])?;
        }
        self.s.check_ne(op, "s", [s, s, heads, n_seq])?;
        State::check_y(op, &self.y, self.n_out())?;
        let sources = [(K, &self.k), (V, &self.v), (Q, &self.q), (G, &self.g), (S, &self.s)];
        check_f32(op, &sources, &self.y)?;
        let state = State { s, rows: s, heads, n_tok: tokens / n_seq, n_seq, n_snap: 1 };
        let (mut constants, groups, why) = state.plan(op, caps)?;
        constants.push(("SCALE", self.scale.into()));
        Call { op: &OP, variant: &[Value::Word(caps.set().word())], sources: &sources, y: &self.y, constants }
            .groups(groups, why, caps)
    }
}
