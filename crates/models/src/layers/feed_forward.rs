//! Feed-forward parts.

use chaski_graph::{Act, Function, NormKind, Op, ValueId};

use super::Experts;
use super::gated::gate_up;
use crate::build::Builder;
use crate::error::ModelError;

/// Kinds of feed-forward parts.
#[derive(Copy, Clone, Debug)]
pub(crate) enum FeedForward {
    /// down(act(gate x) * (up x))
    Gated(Act),
    /// The same with the rows of gate and up concatenated in `ffn_up`.
    Joined(Act),
    /// The first with this width.
    GatedOf(Act, u32),
    /// The first with SiLU, gate and up clamped to this limit.
    Limited(f32),
    /// The first with an RMS norm before the last product, `ffn_sub_norm`.
    Normed(Act),
    /// down(f(up x)) with a unary function and its parameters.
    Plain(&'static Function, [f32; 4]),
    /// down(max(up x, 0)^2)
    Square,
    /// MoE.
    Experts(Experts),
}

impl FeedForward {
    /// down(f(up x)) with the function of this name.
    pub(crate) fn plain(name: &str) -> Self {
        Self::plain_of(name, [0.0; 4])
    }

    /// The same with parameters of the function.
    pub(crate) fn plain_of(name: &str, params: [f32; 4]) -> Self {
        FeedForward::Plain(Function::find(name).expect("families name functions that are there"), params)
    }

    /// `x`: normalised input `[n_embd]`; returns the addend of the residual stream, `[n_embd]`.
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
            FeedForward::Gated(act) => FeedForward::GatedOf(act, n_ff).build(b, block, layer, x),
            FeedForward::GatedOf(act, n_ff) => {
                let (h, down) = gate_up(b, block, "", n_ff, (act, 0.0), x)?;
                Ok(b.mul(h, down)) // [n_embd]
            }
            FeedForward::Limited(limit) => {
                let (h, down) = gate_up(b, block, "", n_ff, (Act::Swiglu, limit), x)?;
                Ok(b.mul(h, down)) // [n_embd]
            }
            FeedForward::Normed(act) => {
                let (h, down) = gate_up(b, block, "", n_ff, (act, 0.0), x)?;
                let h = b.norm_of(h, &format!("{block}.ffn_sub_norm"), NormKind::Rms)?; // [n_ff]
                Ok(b.mul(h, down)) // [n_embd]
            }
            FeedForward::Joined(act) => {
                let [gate, up] = b.joined(&format!("{block}.ffn_up"), [n_ff, n_ff], n_embd)?;
                let down = b.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?;
                let (gate, up) = (b.mul(x, gate), b.mul(x, up)); // [n_ff] each
                let h = b.push(Op::Glu { gate, up, act }, n_ff);
                Ok(b.mul(h, down)) // [n_embd]
            }
            FeedForward::Plain(..) | FeedForward::Square => {
                let up = b.linear(&format!("{block}.ffn_up"), n_ff, n_embd)?;
                let down = b.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?;
                let h = b.mul(x, up); // [n_ff]
                let h = match *self {
                    FeedForward::Plain(f, params) => b.push(Op::Unary { x: h, f, params }, n_ff),
                    // max(h, 0)^2, as h gated by its positive part.
                    _ => b.push(Op::Glu { gate: h, up: h, act: Act::Reglu }, n_ff),
                };
                Ok(b.mul(h, down)) // [n_embd]
            }
            FeedForward::Experts(e) => {
                let parts = e.addends(b, block, x)?;
                Ok(parts.into_iter().reduce(|sum, y| b.add(sum, y)).expect("experts make something"))
            }
        }
    }

    /// The same as several addends of the residual stream.
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
