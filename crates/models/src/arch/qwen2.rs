//! Qwen 2 and 2.5, and what was distilled into them.
//!
//! Llama with biases of q, k and v and rotation of halves.

use chaski_kernels::ops::glu::Act;
use chaski_kernels::rope::RopePairing;

use super::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
