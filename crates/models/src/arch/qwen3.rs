//! Qwen 3, dense and with experts, and Bonsai.
//!
//! Qwen 2 without biases, with norms of the heads of q and k before RoPE.

use chaski_graph::{Act, Rope, RopePairing};

use super::qwen35::rope_of;
use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    rotated(b, rope)
}

/// Vision models, whose positions are those of a text here.
pub(super) fn build_vl(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = rope_of(b)?;
    rotated(b, rope)
}

fn rotated(b: &mut Builder<'_>, rope: Rope) -> Result<(), ModelError> {
    let rope = b.add_rope(rope);
    let n_ff = b.u32("expert_feed_forward_length")?;
    decoder(b, &Decoder::RMS, |b, i| {
        let c = b.config;
        let attention = Attention { norm: QkNorm::Heads, ..Attention::new(b, i, Some(rope))? };
        let feed_forward = if c.n_expert > 0 {
            // Without an expert width in the file, the feed-forward width is divided by the experts per token.
            FeedForward::Experts(Experts::new(b, n_ff.unwrap_or(c.n_ff[i] / c.n_expert_used)))
        } else {
            FeedForward::Gated(Act::Swiglu)
        };
        Ok(Layer { attention, feed_forward, norms: Norms::BEFORE })
    })
}
