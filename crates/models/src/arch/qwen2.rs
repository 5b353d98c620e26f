//! Qwen 2 and 2.5, and models distilled into them.
//!
//! Llama with biases of q, k and v and NeoX RoPE.

use chaski_graph::{Act, Rope, RopePairing};

use super::glm4::rope_of;
use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    rotated(b, rope)
}

/// Models that also see pictures, whose positions are those of a text here.
pub(super) fn build_vl(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = rope_of(b)?;
    rotated(b, rope)
}

fn rotated(b: &mut Builder<'_>, rope: Rope) -> Result<(), ModelError> {
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
