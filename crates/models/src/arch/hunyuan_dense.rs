//! Hunyuan without experts, and Maincoder.
//!
//! Llama with rotation of halves and norms of the heads of q and k after it.

use chaski_kernels::ops::glu::Act;
use chaski_kernels::rope::RopePairing;

use super::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    paired(b, RopePairing::Neox)
}

/// Maincoder rotates neighbouring channels.
pub(super) fn build_maincoder(b: &mut Builder<'_>) -> Result<(), ModelError> {
    paired(b, RopePairing::Norm)
}

fn paired(b: &mut Builder<'_>, pairing: RopePairing) -> Result<(), ModelError> {
    let rope = b.rope(pairing)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm: QkNorm::HeadsLast, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
