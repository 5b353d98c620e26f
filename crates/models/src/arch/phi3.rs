//! Phi 3, 3.5 and 4 without experts.
//!
//! Llama with NeoX RoPE, possibly on part of a head, with factors for short and for long contexts; gate and up are one
//! matrix. Windows given by files are ignored, as in llama.cpp: these models attend to all tokens.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::Joined(Act::Swiglu), norms: Norms::BEFORE })
    })
}
