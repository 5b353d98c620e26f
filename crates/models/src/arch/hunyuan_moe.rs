//! Hunyuan with experts.
//!
//! Norms of the heads of q and k after RoPE; MoE with a shared expert.

use chaski_graph::RopePairing;

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, QkNorm, Shared, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let shared = b.u32("expert_shared_feed_forward_length")?.filter(|n| *n > 0);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm: QkNorm::HeadsLast, ..Attention::new(b, i, Some(rope))? };
        let n_ff = b.config.n_ff[i];
        let shared = Shared::Plain(shared.unwrap_or(n_ff));
        let feed_forward = FeedForward::Experts(Experts { shared, ..Experts::new(b, n_ff) });
        Ok(Layer { attention, feed_forward, norms: Norms::BEFORE })
    })
}
