//! Nemotron-H and Nemotron 3: each layer is Mamba-2, attention without positions, or a feed-forward part.
//!
//! x += mixer(norm(x)). Layers with a feed-forward length are feed-forward parts (up, max(x, 0)^2, down); in Nemotron 3
//! they are MoE with a shared expert, and in its large models the experts work in a narrower space. Of the other
//! layers, those with KV heads are attention.

use chaski_graph::{Act, Gate, NormKind, Op, Routing, ValueId};

use crate::build::{Builder, Linear};
use crate::error::ModelError;
use crate::layers::{Attend, Attention, routing};
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    b.needs("feed_forward_length")?;
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
        let parts = match (c.n_ff[layer], c.n_head_kv[layer]) {
            (0, 0) => vec![recurrent::mamba2(b, &block, h)?],
            (0, _) => vec![Attention::new(b, layer, None)?.build(b, &block, h)?],
            (n_ff, _) if c.n_expert == 0 => {
                let (u, down) = square(b, &block, "", n_ff, h)?;
                vec![b.mul(u, down)]
            }
            _ => moe(b, &block, layer, h)?,
        };
        for y in parts {
            x = b.add(x, y);
        }
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}

/// max(up x, 0)^2, `n_ff` wide, and the matrix of the next product; tensor names end in `suffix`.
fn square(
    b: &mut Builder<'_>,
    block: &str,
    suffix: &str,
    n_ff: u32,
    x: ValueId,
) -> Result<(ValueId, Linear), ModelError> {
    let n_embd = b.config.n_embd;
    let up = b.linear(&format!("{block}.ffn_up{suffix}"), n_ff, n_embd)?;
    let down = b.linear(&format!("{block}.ffn_down{suffix}"), n_embd, n_ff)?;
    let u = b.mul(x, up); // [n_ff]
    Ok((squared(b, u, n_ff), down))
}

/// max(u, 0)^2, as u gated by its positive part.
fn squared(b: &mut Builder<'_>, u: ValueId, width: u32) -> ValueId {
    b.push(Op::Glu { gate: u, up: u, act: Act::Reglu }, width)
}

/// Outputs of the routed experts and of the shared expert, to be added to the residual stream.
fn moe(b: &mut Builder<'_>, block: &str, layer: usize, x: ValueId) -> Result<Vec<ValueId>, ModelError> {
    let c = b.config;
    let (n_embd, n_expert) = (c.n_embd, c.n_expert);
    let routing = Routing { gate: Gate::Sigmoid, ..routing(b, Gate::Sigmoid)? };
    // Without an expert width in the file, the feed-forward width is divided by the experts per token.
    let n_ff = width_of_experts(b, layer)?.unwrap_or(c.n_ff[layer] / c.n_expert_used);
    let latent = b.u32("moe_latent_size")?.filter(|n| *n > 0);
    let inner = latent.unwrap_or(n_embd);
    let shared = b.u32("expert_shared_feed_forward_length")?.filter(|n| *n > 0);

    let router = b.linear(&format!("{block}.ffn_gate_inp"), n_expert, n_embd)?;
    let bias = b.vector(&format!("{block}.exp_probs_b.bias"), n_expert)?;
    let up = b.experts(&format!("{block}.ffn_up_exps"), n_expert, n_ff, inner)?;
    let down = b.experts(&format!("{block}.ffn_down_exps"), n_expert, inner, n_ff)?;
    let shared = shared.map(|n_ff| square(b, block, "_shexp", n_ff, x)).transpose()?;
    let logits = b.mul(x, router); // [n_expert]
    let route = b.route(logits, Some(bias), routing); // [n_used, 2]
    let mut y = x;
    if latent.is_some() {
        let narrow = b.linear(&format!("{block}.ffn_latent_down"), inner, n_embd)?;
        y = b.mul(x, narrow); // [inner]
    }
    let u = b.mul_id(y, route, up); // [n_used, n_ff]
    let h = squared(b, u, n_ff);
    y = b.mul_id(h, route, down); // [n_used, inner]
    y = b.push(Op::MoeReduce { x: y, route }, inner);
    if latent.is_some() {
        let wide = b.linear(&format!("{block}.ffn_latent_up"), n_embd, inner)?;
        y = b.mul(y, wide); // [n_embd]
    }
    let shared = shared.map(|(h, down)| b.mul(h, down)); // [n_embd]
    Ok([y].into_iter().chain(shared).collect())
}

/// The width of a layer's experts: one for all layers, or a list.
fn width_of_experts(b: &Builder<'_>, layer: usize) -> Result<Option<u32>, ModelError> {
    let key = format!("{}.expert_feed_forward_length", b.config.arch);
    if !b.metadata.contains(&key) {
        return Ok(None);
    }
    let widths = b.metadata.per_layer::<u32>(&key, b.config.n_ff.len())?;
    Ok(Some(widths[layer]).filter(|n| *n > 0))
}
