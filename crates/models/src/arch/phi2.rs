//! Phi 1, 1.5 and 2.
//!
//! One layer norm before attention and feed-forward part, which run in parallel; biases throughout, NeoX RoPE on the
//! first channels of a head, no gate.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::LAYER, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::plain("gelu"), norms: Norms::ONE })
    })
}
