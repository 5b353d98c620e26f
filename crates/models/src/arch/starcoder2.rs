//! StarCoder 2.
//!
//! Layer norms, biases throughout, NeoX RoPE, a feed-forward part without gate.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::LAYER, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::plain("gelu"), norms: Norms::BEFORE })
    })
}
