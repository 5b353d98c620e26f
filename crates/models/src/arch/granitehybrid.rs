//! Granite 4.0 "H": Mamba-2, in some layers attention, and a feed-forward part or MoE in every layer.
//!
//! x0 = embeddings * embedding_scale; x += r * mixer(norm(x)); x += r * feed_forward(norm(x)) with r = residual_scale;
//! logits / logit_scale. Layers without KV heads are Mamba-2. `rope.scaling.finetuned` = false turns RoPE off.

use chaski_graph::{Act, NormKind, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, Experts, FeedForward, Shared};
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    // Absent or 0 means 1.
    let factor = |key: &str| Ok::<_, ModelError>(b.f32(key)?.filter(|v| *v != 0.0));
    let embedding = factor("embedding_scale")?.unwrap_or(1.0);
    let residual = factor("residual_scale")?.unwrap_or(1.0);
    let logit = 1.0 / factor("logit_scale")?.unwrap_or(1.0);
    let scale = factor("attention.scale")?;
    let rope = match b.bool("rope.scaling.finetuned")? {
        Some(false) => None,
        _ => Some(b.rope(RopePairing::Norm)?),
    };
    let rope = rope.map(|r| b.add_rope(r));
    let shared = b.u32("expert_shared_feed_forward_length")?.filter(|n| *n > 0);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed_scaled(embeddings, embedding); // [n_embd]
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
        let m = if c.n_head_kv[layer] == 0 {
            recurrent::mamba2(b, &block, h)?
        } else {
            let attention = Attention::new(b, layer, rope)?;
            let score = scale.map_or(attention.score, Score::scaled);
            Attention { score, ..attention }.build(b, &block, h)?
        };
        let m = b.scaled(m, residual);
        x = b.add(x, m);
        let h = b.norm_of(x, &format!("{block}.ffn_norm"), NormKind::Rms)?;
        let part = if c.n_expert > 0 {
            let shared = shared.map_or(Shared::None, Shared::Plain);
            FeedForward::Experts(Experts { shared, ..Experts::new(b, c.n_ff[layer]) })
        } else {
            FeedForward::Gated(Act::Swiglu)
        };
        for f in part.addends(b, &block, layer, h)? {
            let f = b.scaled(f, residual);
            x = b.add(x, f);
        }
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |b, y| b.scaled(y, logit))
}
