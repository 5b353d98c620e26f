//! OLMo 1.
//!
//! Llama with unweighted layer norms; q, k and v may be clamped.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    let clamp = b.f32("attention.clamp_kqv")?.unwrap_or(0.0).max(0.0);
    decoder(b, &Decoder { weighted: false, ..Decoder::LAYER }, |b, i| {
        let attention = Attention { clamp, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
