//! gpt-oss.
//!
//! Biases throughout, NeoX RoPE, windows in every second layer, attention sinks; MoE with clamped gates whose weights
//! are a softmax over the selected experts.

use chaski_graph::{Act, Gate, RopePairing, Routing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, decoder, softmax_routing};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let windows = b.windows(128, 2)?;
    let n_ff = b.u32("expert_feed_forward_length")?;
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        let score = Score { window: windows[i], sinks: true, ..attention.score };
        let experts = Experts {
            act: Act::SwigluOai { alpha: 1.702, limit: 7.0 },
            routing: Routing { gate: Gate::SoftmaxWeight, norm: None, ..softmax_routing(b) },
            ..Experts::new(b, n_ff.unwrap_or(b.config.n_ff[i]))
        };
        Ok(Layer {
            attention: Attention { score, ..attention },
            feed_forward: FeedForward::Experts(experts),
            // Despite its name, it precedes the feed-forward part.
            norms: Norms { feed_forward: Some("post_attention_norm"), ..Norms::BEFORE },
        })
    })
}
