//! EuroBERT: the layers of Llama with NeoX RoPE, and attention in both directions.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder { encodes: Some("output_norm"), ..Decoder::RMS }, |b, i| {
        let attention = Attention { both_ways: true, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
