//! Granite 4.0 "H": Mamba-2, here and there attention, and a feed-forward part or experts in every layer.
//!
//! x0 = embeddings * embedding_scale; x += r * mixer(norm(x)); x += r * feed_forward(norm(x)) with r = residual_scale;
//! logits / logit_scale. Layers without KV heads are Mamba-2. The converter says with `rope.scaling.finetuned` = false
//! that nothing is rotated.

use chaski_kernels::ops::glu::Act;
use chaski_kernels::rope::{Rope, RopePairing};
use chaski_runtime::graph::ValueId;

use super::Builder;
use crate::error::ModelError;
use crate::layers::AttentionKind;
use crate::{layers, recurrent};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let key = |k: &str| format!("{}.{k}", c.arch);
    // 0 stands for none.
    let factor = |k: &str| -> Result<f32, ModelError> {
        Ok(b.metadata.opt_f32(&key(k))?.filter(|v| *v != 0.0).unwrap_or(1.0))
    };
    let (embedding, residual, logit) =
        (factor("embedding_scale")?, factor("residual_scale")?, factor("logit_scale")?);
    let scale = b.metadata.opt_f32(&key("attention.scale"))?.filter(|v| *v != 0.0);
    let plain = AttentionKind::plain(b);
    let kind = AttentionKind { scale: scale.unwrap_or(plain.scale), ..plain };
    let rotates = b.metadata.opt_bool(&key("rope.scaling.finetuned"))?.unwrap_or(true);
    let rope = match rotates {
        true => c.rope(b.metadata, RopePairing::Norm, b.rope_factors.take())?,
        false => Rope::plain(0, RopePairing::Norm, 10_000.0),
    };
    b.set_rope(rope);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let x = b.embed(embeddings);
    let mut x = b.scaled(x, embedding); // [n_embd]
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let w = b.vector(&format!("{block}.attn_norm.weight"), c.n_embd)?;
        let h = b.norm(x, w);
        let m = if c.n_head_kv[layer] == 0 {
            recurrent::mamba2(b, &block, h)?
        } else {
            layers::attention_of(b, &block, layer, kind, h)?
        };
        let m = b.scaled(m, residual);
        x = b.add(x, m);
        let w = b.vector(&format!("{block}.ffn_norm.weight"), c.n_embd)?;
        let h = b.norm(x, w);
        let f = feed_forward(b, &block, layer, h)?;
        let f = b.scaled(f, residual);
        x = b.add(x, f);
    }
    let w = b.vector("output_norm.weight", c.n_embd)?;
    let h = b.norm(x, w);
    // The output matrix is linear, so what divides the logits may as well divide its input.
    let h = b.scaled(h, 1.0 / logit);
    b.logits(h, embeddings)
}

/// Dense, or experts beside one that every token goes through.
fn feed_forward(b: &mut Builder<'_>, block: &str, layer: usize, h: ValueId) -> Result<ValueId, ModelError> {
    let c = b.config;
    if c.n_expert == 0 {
        return layers::feed_forward(b, block, layer, Act::Swiglu, h);
    }
    let routed = layers::experts(b, block, c.n_ff[layer], Act::Swiglu, layers::softmax_routing(b), h)?;
    let n_shared = b.metadata.opt_u32(&format!("{}.expert_shared_feed_forward_length", c.arch))?.unwrap_or(0);
    if n_shared == 0 {
        return Ok(routed);
    }
    let shared = layers::gated_part(b, block, "_shexp", n_shared, Act::Swiglu, h)?;
    Ok(b.add(routed, shared))
}
