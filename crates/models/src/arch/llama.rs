//! Llama 2 to 3.2, TinyLlama, SmolLM, Mistral up to 7B v0.3, Nemo, Mixtral, and their finetunes.
//!
//! x += attention(norm(x)); x += feed_forward(norm(x)); RoPE of adjacent channels, SiLU-gated feed-forward, in Mixtral
//! as MoE.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    if c.n_rot != c.d_head {
        return Err(ModelError::Config {
            key: format!("{}.rope.dimension_count", c.arch),
            found: c.n_rot.to_string(),
            expected: format!("must be the head's {} channels in this family", c.d_head),
        });
    }
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: feed_forward(b, i), norms: Norms::BEFORE })
    })
}

/// A gated feed-forward part, as MoE if the file has experts.
pub(super) fn feed_forward(b: &Builder<'_>, layer: usize) -> FeedForward {
    if b.config.n_expert > 0 {
        FeedForward::Experts(Experts::new(b, b.config.n_ff[layer]))
    } else {
        FeedForward::Gated(Act::Swiglu)
    }
}
