//! GLM 4.5 to 4.7 with experts.
//!
//! NeoX RoPE on the first channels of a head, in large models norms of heads; some dense layers, then MoE with sigmoid
//! gates and a shared expert.

use chaski_graph::{Act, Gate, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{
    Attention, Decoder, Experts, FeedForward, Layer, Norms, QkNorm, Shared, decoder, routing,
};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let norm = if b.has("blk.0.attn_q_norm.weight") { QkNorm::Heads } else { QkNorm::None };
    let n_dense = b.u32("leading_dense_block_count")?.unwrap_or(0) as usize;
    let n_ff = b.u32("expert_feed_forward_length")?;
    let n_shared = b.u32("expert_shared_count")?.unwrap_or(0);
    let routing = routing(b, Gate::Sigmoid)?;
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm, ..Attention::new(b, i, Some(rope))? };
        let n_ff = n_ff.unwrap_or(b.config.n_ff[i]);
        let shared = if n_shared > 0 { Shared::Plain(n_ff.saturating_mul(n_shared)) } else { Shared::None };
        let feed_forward = if i < n_dense {
            FeedForward::Gated(Act::Swiglu)
        } else {
            FeedForward::Experts(Experts { routing, shared, ..Experts::new(b, n_ff) })
        };
        // Despite its name, the second norm precedes the feed-forward part.
        let norms = Norms { feed_forward: Some("post_attention_norm"), ..Norms::BEFORE };
        Ok(Layer { attention, feed_forward, norms })
    })
}
