//! Falcon 1.
//!
//! Attention and feed-forward part in parallel after one layer norm, in the larger models after one each; NeoX RoPE, no
//! gate.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let norms = match b.has("blk.0.attn_norm_2.weight") {
        true => Norms { attention: Some("attn_norm_2"), feed_forward: Some("attn_norm"), ..Norms::ONE },
        false => Norms::ONE,
    };
    decoder(b, &Decoder::LAYER, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::plain("gelu"), norms })
    })
}
