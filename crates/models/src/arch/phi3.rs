//! Phi 3, 3.5 and 4 without experts.
//!
//! Llama with rotation of halves, perhaps of a part of a head, by factors for short and for long contexts; gate and up are
//! one matrix. Windows that files name are not used, as elsewhere: these models see all.

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
