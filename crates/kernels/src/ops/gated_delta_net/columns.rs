//! The gated delta rule over the columns of a batch, with the states of the sequences updated in place.

use super::{BETA, G, K, OP, Q, V};
use crate::call::{Call, Y, check_f32};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;
use crate::state::{State, here};
use crate::tensor::Tensor;

/// A call. The states are `[n_seq, heads, S, S]` f32 and updated in place; a column at position 0 starts from zeros.
/// The step buffer holds the number of columns (at most that of `q`) and their sequences. `a` has the rates of all
/// heads, then their biases.
#[derive(Clone, Copy, Debug)]
pub struct DeltaColumns {
    /// Queries: S channels, heads of queries and keys, columns.
    pub q: Tensor,
    /// Keys, parts of the same columns.
    pub k: Tensor,
    /// Values, parts of the same columns: S channels, heads, columns.
    pub v: Tensor,
    /// Before bias and softplus: heads, columns.
    pub alpha: Tensor,
    /// Before the logistic function: heads, columns.
    pub beta: Tensor,
    /// Adjacent heads share q and k; otherwise heads as far apart as q has heads do.
    pub neighbours: bool,
    /// Added to the sums of squares that normalise q and k.
    pub eps: f32,
    /// As `v`.
    pub y: Tensor,
    /// Sequences.
    pub n_seq: u32,
}

impl DeltaColumns {
    /// Values of the state of a sequence.
    pub fn n_state(&self) -> u32 {
        self.v.ne[0] * self.v.ne[0] * self.v.ne[1]
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] if tensors are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        self.check()?;
        let op = OP.name;
        let [s, heads, n_tok, _] = self.v.ne;
        let state = State { s, rows: s, heads, n_tok, n_seq: 1, n_snap: 0 };
        let (mut constants, n_group, why) = state.plan_here(op, caps)?;
        constants.extend([
            ("NEIGHBOURS", f64::from(u8::from(self.neighbours))),
            ("EPS", self.eps.into()),
            ("N_SEQ", self.n_seq.into()),
        ]);
        Call {
            op: &OP,
            variant: &[Value::Word(caps.set().word()), Value::Word("head"), Value::Word(here(n_tok))],
            sources: &[(Q, &self.q), (K, &self.k), (V, &self.v), (G, &self.alpha), (BETA, &self.beta)],
            y: &self.y,
            constants,
        }
        .groups(n_group, why, caps)
    }

    /// Checks types and sizes.
    pub(super) fn check(&self) -> Result<(), DispatchError> {
        let op = OP.name;
        let [s, heads, n_tok, _] = self.v.ne;
        let sources = [(Q, &self.q), (K, &self.k), (V, &self.v), (G, &self.alpha), (BETA, &self.beta)];
        check_f32(op, &sources, &self.y)?;
        for (names, t) in sources.iter().chain([&(Y, &self.y)]) {
            t.check(op, names.name)?;
        }
        let k_heads = self.q.ne[1].max(1);
        for (what, t) in [("q", &self.q), ("k", &self.k)] {
            t.check_ne(op, what, [s, k_heads, n_tok, 1])?;
        }
        self.y.check_ne(op, "y", self.v.ne)?;
        for (what, t) in [("alpha", &self.alpha), ("beta", &self.beta)] {
            t.check_ne(op, what, [heads, n_tok, 1, 1])?;
        }
        if heads % k_heads != 0 {
            let expected = format!("a multiple of {k_heads} heads of q");
            return Err(DispatchError::Shape { op, what: "heads", expected, found: heads.into() });
        }
        Ok(())
    }
}
