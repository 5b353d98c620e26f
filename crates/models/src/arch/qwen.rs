//! Qwen 1.
//!
//! Qwen 2; files give twice the width of the feed-forward part.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        let feed_forward = FeedForward::GatedOf(Act::Swiglu, b.config.n_ff[i] / 2);
        Ok(Layer { attention, feed_forward, norms: Norms::BEFORE })
    })
}
