//! Dense feed-forward parts.

use chaski_kernels::ops::glu::Act;
use chaski_kernels::ops::unary::Function;
use chaski_runtime::graph::{Op, ValueId};

use super::Experts;
use crate::arch::{Builder, Linear};
use crate::error::ModelError;

/// The kinds of feed-forward parts.
#[derive(Copy, Clone, Debug)]
pub(crate) enum FeedForward {
    /// down(act(gate x) * (up x))
    Gated(Act),
    /// The same where `ffn_up` holds the rows of gate, then those of up.
    Joined(Act),
    /// down(f(up x)) by a function of one value.
    Plain(&'static Function),
    /// By experts.
    Experts(Experts),
}

impl FeedForward {
    /// down(f(up x)) by the function of this name in the table of functions.
    pub(crate) fn plain(name: &str) -> Self {
        FeedForward::Plain(Function::find(name).expect("families name functions that are there"))
    }

    /// `x`: normalised input `[n_embd]`; returns what is added to the residual stream, `[n_embd]`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub(crate) fn build(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        layer: usize,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let (n_embd, n_ff) = (b.config.n_embd, b.config.n_ff[layer]);
        match *self {
            FeedForward::Gated(act) => {
                let (h, down) = gate_up(b, block, "", n_ff, act, x)?;
                Ok(b.mul(h, down)) // [n_embd]
            }
            FeedForward::Joined(act) => {
                let [gate, up] = b.joined(&format!("{block}.ffn_up"), [n_ff, n_ff], n_embd)?;
                let down = b.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?;
                let (gate, up) = (b.mul(x, gate), b.mul(x, up)); // [n_ff] each
                let h = b.push(Op::Glu { gate, up, act }, n_ff);
                Ok(b.mul(h, down)) // [n_embd]
            }
            FeedForward::Plain(f) => {
                let up = b.linear(&format!("{block}.ffn_up"), n_ff, n_embd)?;
                let down = b.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?;
                let h = b.mul(x, up); // [n_ff]
                let h = b.push(Op::Unary { x: h, f, params: [0.0; 4] }, n_ff);
                Ok(b.mul(h, down)) // [n_embd]
            }
            FeedForward::Experts(e) => {
                let parts = e.addends(b, block, x)?;
                Ok(parts.into_iter().reduce(|sum, y| b.add(sum, y)).expect("experts make something"))
            }
        }
    }

    /// The same in parts, each of which is added to the residual stream.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub(crate) fn addends(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        layer: usize,
        x: ValueId,
    ) -> Result<Vec<ValueId>, ModelError> {
        match self {
            FeedForward::Experts(e) => e.addends(b, block, x),
            _ => Ok(vec![self.build(b, block, layer, x)?]),
        }
    }
}

/// Gated feed-forward part, `n_ff` wide, up to its last product: act(gate x) * (up x) and down, by tensors whose names end
/// in `suffix`.
///
/// # Errors
/// [`ModelError::NoTensor`], [`ModelError::Shape`].
pub(super) fn gate_up(
    b: &mut Builder<'_>,
    block: &str,
    suffix: &str,
    n_ff: u32,
    act: Act,
    x: ValueId,
) -> Result<(ValueId, Linear), ModelError> {
    let n_embd = b.config.n_embd;
    let gate = b.linear(&format!("{block}.ffn_gate{suffix}"), n_ff, n_embd)?;
    let up = b.linear(&format!("{block}.ffn_up{suffix}"), n_ff, n_embd)?;
    let down = b.linear(&format!("{block}.ffn_down{suffix}"), n_embd, n_ff)?;
    let (gate, up) = (b.mul(x, gate), b.mul(x, up)); // [n_ff] each
    Ok((b.push(Op::Glu { gate, up, act }, n_ff), down))
}
