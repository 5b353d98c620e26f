//! GPT-2.
//!
//! A table of positions instead of RoPE, layer norms, biases throughout, a feed-forward part without gate.

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    decoder(b, &Decoder { positions: true, ..Decoder::LAYER }, |b, i| {
        let attention = Attention::new(b, i, None)?;
        Ok(Layer { attention, feed_forward: FeedForward::plain("gelu"), norms: Norms::BEFORE })
    })
}
