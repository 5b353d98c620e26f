//! DBRX.
//!
//! Layer norms, NeoX RoPE, clamped q, k and v, MoE.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let clamp = b.f32("attention.clamp_kqv")?.unwrap_or(0.0).max(0.0);
    decoder(b, &Decoder::LAYER, |b, i| {
        let attention = Attention { clamp, ..Attention::new(b, i, Some(rope))? };
        let feed_forward = FeedForward::Experts(Experts::new(b, b.config.n_ff[i]));
        // Despite its name, the second norm is not one of heads.
        let norms = Norms { feed_forward: Some("attn_output_norm"), ..Norms::BEFORE };
        Ok(Layer { attention, feed_forward, norms })
    })
}
