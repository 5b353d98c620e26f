//! Talkie.
//!
//! Unweighted RMS norms, of the embeddings too; norms of heads after RoPE, with a factor for each head of q. Each layer
//! adds the normalised embeddings to the residual stream again, times a factor of its own.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let logit_scale = b.f32("logit_scale")?.unwrap_or(1.0);
    let d =
        Decoder { weighted: false, embed_plain_norm: true, embed_again: true, logit_scale, ..Decoder::RMS };
    decoder(b, &d, |b, i| {
        let attention = Attention { norm: QkNorm::HeadsLastGain, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
