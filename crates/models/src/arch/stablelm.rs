//! StableLM.
//!
//! Layer norms, NeoX RoPE on the first channels of a head; the 12B model has norms of heads, and both parts run in
//! parallel.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let norm = if b.has("blk.0.attn_q_norm.weight") { QkNorm::LayerHeads } else { QkNorm::None };
    let norms = if b.has("blk.0.ffn_norm.weight") { Norms::BEFORE } else { Norms::ONE };
    decoder(b, &Decoder::LAYER, |b, i| {
        let attention = Attention { norm, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms })
    })
}
