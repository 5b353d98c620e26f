//! PLM.
//!
//! Latent attention (MLA), a squared-ReLU feed-forward part.

use chaski_graph::{RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Decoder, FeedForward, LatentAttention, LatentSizes, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let sizes = LatentSizes::new(b.metadata, b.config)?;
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    let score = Score::scaled(1.0 / ((sizes.plain + sizes.n_rot) as f32).sqrt());
    decoder(b, &Decoder::RMS, |_, _| {
        let attention = LatentAttention { sizes, q_rank: None, rope, score };
        Ok(Layer { attention, feed_forward: FeedForward::Square, norms: Norms::BEFORE })
    })
}
