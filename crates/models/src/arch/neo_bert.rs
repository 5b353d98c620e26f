//! NeoBERT.
//!
//! Attention in both directions, RoPE of adjacent channels, RMS norms before each part, SiLU gates stored with the rows
//! that they multiply.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder { encodes: Some("enc.output_norm"), ..Decoder::RMS }, |b, i| {
        let attention = Attention { both_ways: true, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Joined(Act::Swiglu), norms: Norms::BEFORE })
    })
}
