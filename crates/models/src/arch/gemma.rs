//! Gemma 1.
//!
//! Llama with NeoX RoPE, GELU gates, and embeddings times the square root of their width.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &decoder_of(b), |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Geglu), norms: Norms::BEFORE })
    })
}

/// The embedding scale of all Gemmas.
pub(super) fn decoder_of(b: &Builder<'_>) -> Decoder {
    Decoder { embed_scale: (b.config.n_embd as f32).sqrt(), ..Decoder::RMS }
}

/// The factor of scores: by the channels of a head, except in the largest models, where it is by n_embd / n_head.
pub(super) fn score_scale(b: &Builder<'_>, n_layer_of_largest: u32) -> f32 {
    let c = b.config;
    let even = c.n_embd / c.n_head.first().copied().unwrap_or(1).max(1);
    let d = if c.n_layer == n_layer_of_largest { even } else { c.d_head };
    1.0 / (d as f32).sqrt()
}
