//! Recurrences whose state is a square matrix per head: the code shared by RWKV and gated linear attention.

pub(crate) mod cases;
pub(crate) mod reference;

use crate::call::{Call, Names, check_f32};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value};
use crate::state::State;
use crate::tensor::Tensor;

/// The operands of a call; all tensors are f32.
pub(crate) struct MatrixState<'a> {
    /// Per-token operands, values among them: values per head, heads, tokens of all sequences.
    pub(crate) tokens: &'a [(Names, &'a Tensor)],
    /// Other operands, whose sizes the operation checks.
    pub(crate) others: &'a [(Names, &'a Tensor)],
    /// The states: values of a head twice, heads, sequences.
    pub(crate) s: (Names, &'a Tensor),
    /// The sizes of the values, then those of the states, contiguous in one row.
    pub(crate) y: &'a Tensor,
    /// Constants specific to the operation.
    pub(crate) constants: &'a [(&'static str, f64)],
}

impl MatrixState<'_> {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, [`DispatchError::Type`] if they are not f32.
    pub(crate) fn dispatch(&self, op: &'static Op, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let MatrixState { tokens, others, s: states, y, constants } = *self;
        let [s, heads, n_token, _] = tokens[0].1.ne;
        let n_seq = states.1.ne[3];
        if n_seq == 0 || n_token % n_seq != 0 {
            let expected = format!("a multiple of {n_seq} sequences");
            return Err(DispatchError::Shape {
                op: op.name,
                what: "tokens",
                expected,
                found: n_token.into(),
            });
        }
        for (names, t) in tokens {
            t.check_ne(op.name, names.name, [s, heads, n_token, 1])?;
        }
        states.1.check_ne(op.name, states.0.name, [s, s, heads, n_seq])?;
        State::check_y(op.name, y, n_out(tokens[0].1, states.1))?;
        let sources = [tokens, others, &[states]].concat();
        check_f32(op.name, &sources, y)?;
        let state = State { s, rows: s, heads, n_tok: n_token / n_seq, n_seq, n_snap: 1 };
        let (mut all, groups, why) = state.plan(op.name, caps)?;
        all.extend(constants);
        let variant = [Value::Word(caps.set().word())];
        Call { op, variant: &variant, sources: &sources, y, constants: all }.groups(groups, why, caps)
    }
}

/// Number of values of y for a per-token operand and these states.
pub(crate) fn n_out(of_tokens: &Tensor, states: &Tensor) -> u32 {
    of_tokens.n_elem() + states.n_elem()
}
