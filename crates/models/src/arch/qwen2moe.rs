//! Qwen 1.5 and 2 with experts.
//!
//! Qwen 2 with MoE whose weights are not normalised, and a gated shared expert.

use chaski_graph::{RopePairing, Routing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{
    Attention, Decoder, Experts, FeedForward, Layer, Norms, Shared, decoder, softmax_routing,
};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let n_ff = b.u32("expert_feed_forward_length")?;
    let shared = b.u32("expert_shared_feed_forward_length")?;
    decoder(b, &Decoder::RMS, |b, i| {
        let c = b.config;
        let attention = Attention::new(b, i, Some(rope))?;
        let experts = Experts {
            routing: Routing { norm: None, ..softmax_routing(b) },
            shared: Shared::Gated(shared.unwrap_or(c.n_ff[i])),
            // Without an expert width in the file, the feed-forward width is divided by the experts per token.
            ..Experts::new(b, n_ff.unwrap_or(c.n_ff[i] / c.n_expert_used.max(1)))
        };
        Ok(Layer { attention, feed_forward: FeedForward::Experts(experts), norms: Norms::BEFORE })
    })
}
