//! LFM 2, dense and with experts: short convolutions, in some layers attention, a feed-forward part in every layer.
//!
//! x += mixer(norm(x)); x += feed_forward(norm(x)). Layers without KV heads are gated convolutions. With experts, the
//! first layers are dense, the others are MoE with sigmoid gates.

use chaski_graph::{Act, Gate, NormKind, RopePairing, Routing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, Experts, FeedForward, QkNorm, routing};
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let window = b.u32("attention.sliding_window")?.unwrap_or(0);
    layers(b, window, |_| FeedForward::Gated(Act::Swiglu))
}

pub(super) fn build_moe(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let n_dense = b.u32("leading_dense_block_count")?.unwrap_or(0) as usize;
    let n_ff = recurrent::size(b, "expert_feed_forward_length", 1, 1 << 22)?;
    // Weights are always divided by their sum, without other scaling.
    let routing = Routing { norm: Some(Routing::CLAMP), scale: 1.0, ..routing(b, Gate::Sigmoid)? };
    let experts = Experts { routing, ..Experts::new(b, n_ff) };
    layers(b, 0, |layer| match layer < n_dense {
        true => FeedForward::Gated(Act::Swiglu),
        false => FeedForward::Experts(experts),
    })
}

/// All layers; attention has a window of `window` tokens, or none if it is 0.
fn layers(
    b: &mut Builder<'_>,
    window: u32,
    feed_forward: impl Fn(usize) -> FeedForward,
) -> Result<(), ModelError> {
    let c = b.config;
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
        let m = if c.n_head_kv[layer] == 0 {
            recurrent::gated_conv(b, &block, h)?
        } else {
            let mut attention = Attention::new(b, layer, Some(rope))?;
            attention.score.window = window;
            Attention { norm: QkNorm::Heads, ..attention }.build(b, &block, h)?
        };
        x = b.add(x, m);
        let h = b.norm_of(x, &format!("{block}.ffn_norm"), NormKind::Rms)?;
        for f in feed_forward(layer).addends(b, &block, layer, h)? {
            x = b.add(x, f);
        }
    }
    // Despite its name, this is the output norm.
    let h = b.norm_of(x, "token_embd_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
