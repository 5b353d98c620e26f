//! Seed-OSS.
//!
//! Qwen 2 whose second norm has another name.

use chaski_graph::{Act, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        // Despite its name, the second norm precedes the feed-forward part.
        let norms = Norms { feed_forward: Some("post_attention_norm"), ..Norms::BEFORE };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms })
    })
}
