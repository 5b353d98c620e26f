//! Nemotron 3 and 4, Minitron, and Jais 2.
//!
//! Layer norms, NeoX RoPE, possibly on part of a head, a squared-ReLU feed-forward part.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::LAYER, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::Square, norms: Norms::BEFORE })
    })
}
