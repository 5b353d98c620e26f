//! `gated_delta_net`: linear attention with the gated delta rule, one decay per head or per channel (KDA).

mod cases;
mod chunks;
mod column_cases;
mod columns;
pub mod reference;

pub use chunks::DeltaChunks;
pub use columns::DeltaColumns;

use crate::call::{Call, Names, check_f32, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::state::State;
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "gated_delta_net",
    template: template!("gated_delta_net/gated_delta_net.wgsl.jinja"),
    variants: || {
        let mut out = Vec::new();
        for set in ["base", "sg"] {
            for (gate, state) in [("head", "apart"), ("value", "apart"), ("head", "many"), ("head", "one")] {
                out.push(vec![
                    ("set", Value::Word(set)),
                    ("gate", Value::Word(gate)),
                    ("state", Value::Word(state)),
                ]);
            }
        }
        out
    },
    cases: Op::cases(|| cases::by_hand().into_iter().chain(column_cases::cases()).collect()),
    ggml: &["GATED_DELTA_NET"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

/// The same over many columns in place, in chunks.
pub const CHUNKS: Op = Op {
    name: "delta_chunks",
    template: template!("gated_delta_net/chunks.wgsl.jinja"),
    variants: || ["prepare", "advance"].iter().map(|p| vec![("part", Value::Word(p))]).collect(),
    cases: Op::cases(column_cases::chunk_cases),
    ggml: &["GATED_DELTA_NET"],
    grid: None,
};

const Q: Names = names!("q");
const K: Names = names!("k");
const V: Names = names!("v");
const G: Names = names!("g");
const BETA: Names = names!("beta");
const S: Names = names!("s");

/// A call; all tensors are f32. Sizes are those of a head, heads, tokens, sequences.
#[derive(Clone, Copy, Debug)]
pub struct GatedDeltaNet {
    /// Queries; may have fewer heads than v, shared in turn.
    pub q: Tensor,
    /// Keys, as q.
    pub k: Tensor,
    /// Values.
    pub v: Tensor,
    /// Logarithm of the decay, at most 0: one per head, or per channel of k.
    pub g: Tensor,
    /// Learning rate of the delta rule: one per head.
    pub beta: Tensor,
    /// States: channels of k, channels of v, heads, sequences.
    pub s: Tensor,
    /// Number of state snapshots to keep, after the last `n_snap` tokens.
    pub n_snap: u32,
    /// The sizes of v, then `n_snap` times those of s (newest first), contiguous in one row.
    pub y: Tensor,
}

impl GatedDeltaNet {
    fn state(&self) -> State {
        let [s, heads, n_tok, n_seq] = self.v.ne;
        State { s, rows: s, heads, n_tok, n_seq, n_snap: self.n_snap }
    }

    /// Values of y.
    pub fn n_out(&self) -> u32 {
        self.v.n_elem() + self.state().n_state()
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] if they are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let op = OP.name;
        let State { s, heads, n_tok, n_seq, n_snap, .. } = self.state();
        let sources =
            [(Q, &self.q), (K, &self.k), (V, &self.v), (G, &self.g), (BETA, &self.beta), (S, &self.s)];
        check_f32(op, &sources, &self.y)?;
        for (what, t) in [("q", &self.q), ("k", &self.k)] {
            t.check_ne(op, what, [s, t.ne[1], n_tok, n_seq])?;
            t.check_repeats(op, what, self.v.ne)?;
        }
        let gates = if self.g.ne[0] == 1 { 1 } else { s };
        self.g.check_ne(op, "g", [gates, heads, n_tok, n_seq])?;
        self.beta.check_ne(op, "beta", [1, heads, n_tok, n_seq])?;
        self.s.check_ne(op, "s", [s, s, heads, n_seq])?;
        State::check_y(op, &self.y, self.n_out())?;
        if n_snap > n_tok {
            let expected = format!("at most {n_tok} tokens");
            return Err(DispatchError::Shape { op, what: "n_snap", expected, found: n_snap.into() });
        }
        let (constants, groups, why) = self.state().plan(op, caps)?;
        let gate = if gates == 1 { "head" } else { "value" };
        Call {
            op: &OP,
            variant: &[Value::Word(caps.set().word()), Value::Word(gate), Value::Word("apart")],
            sources: &sources,
            y: &self.y,
            constants,
        }
        .groups(groups, why, caps)
    }
}
