//! Gemma 4, dense and with experts, text only.
//!
//! Norms around both parts, of the heads of q, k and v; unscaled scores; windows in most layers, which have smaller
//! heads and their own RoPE. The last layers reuse keys and values of earlier ones. Small models have per-layer
//! embeddings, others experts beside the dense part.

use chaski_graph::{Act, NormKind, Rope, RopePairing, Score, ValueId};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{
    Attend, Attention, Experts, FeedForward, HeadGate, PerLayer, QkNorm, softcapped, softmax_routing,
};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let attention = attention(b)?;
    let n_per_layer = b.u32("embedding_length_per_layer_input")?.unwrap_or(0);
    if n_per_layer > 1 << 16 {
        return Err(b.wrong("embedding_length_per_layer_input", n_per_layer, "must be at most 65536"));
    }
    let softcap = b.f32("final_logit_softcapping")?.unwrap_or(30.0);
    let n_ff_expert = b.u32("expert_feed_forward_length")?;

    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed_scaled(embeddings, (c.n_embd as f32).sqrt()); // [n_embd]
    let per_layer = if n_per_layer > 0 { Some(PerLayer::new(b, n_per_layer, x)?) } else { None };
    for (layer, attention) in attention.iter().enumerate() {
        let block = format!("blk.{layer}");
        let norm =
            |b: &mut Builder<'_>, x, stem: &str| b.norm_of(x, &format!("{block}.{stem}"), NormKind::Rms);
        let h = norm(b, x, "attn_norm")?;
        let a = attention.build(b, &block, h)?;
        let a = norm(b, a, "post_attention_norm")?;
        x = b.add(x, a);
        let h = norm(b, x, "ffn_norm")?;
        let mut f = FeedForward::Gated(Act::Geglu).build(b, &block, layer, h)?;
        if c.n_expert > 0 {
            f = norm(b, f, "post_ffw_norm_1")?;
            let h = norm(b, x, "pre_ffw_norm_2")?;
            let e = experts(b, &block, n_ff_expert.unwrap_or(c.n_ff[layer]), x, h)?;
            let e = norm(b, e, "post_ffw_norm_2")?;
            f = b.add(f, e);
        }
        let f = norm(b, f, "post_ffw_norm")?;
        x = b.add(x, f);
        if let Some(p) = per_layer {
            let p = p.build(b, &block, layer, x)?;
            x = b.add(x, p);
        }
        let scale = format!("{block}.layer_output_scale.weight");
        if b.has(&scale) {
            x = b.scaled(x, b.scalar(&scale)?);
        }
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |b, y| softcapped(b, y, softcap))
}

/// Attention parameters of the layers.
fn attention(b: &mut Builder<'_>) -> Result<Vec<Attention>, ModelError> {
    let c = b.config;
    // Divisors so large that the angles vanish disable RoPE for a pair.
    let far = b.rope(RopePairing::Neox)?;
    let n_rot = b.u32("rope.dimension_count_swa")?.unwrap_or(c.n_rot);
    let d_near = b.u32("attention.key_length_swa")?.unwrap_or(c.d_head);
    let d_near_v = b.u32("attention.value_length_swa")?.unwrap_or(c.d_head_v);
    if d_near == 0 || d_near > 1 << 14 || n_rot > d_near || n_rot % 2 != 0 {
        let expected =
            format!("must be 1 to 16384, and at least the {n_rot} rotated channels, an even number");
        return Err(b.wrong("attention.key_length_swa", d_near, expected));
    }
    if d_near_v != d_near || c.d_head_v != c.d_head {
        let what = format!("heads of {}/{} and {d_near}/{d_near_v} channels", c.d_head, c.d_head_v);
        return Err(ModelError::Unsupported { what });
    }
    let base = b.f32("rope.freq_base_swa")?.unwrap_or(10_000.0);
    let near = Rope::plain(n_rot, RopePairing::Neox, base.into());
    let (far, near) = (b.add_rope(far), b.add_rope(near));
    let windows = b.windows(0, 6)?;
    let n_shared = b.u32("attention.shared_kv_layers")?.unwrap_or(0);
    let mut out: Vec<Attention> = Vec::new();
    for layer in 0..c.n_layer as usize {
        let is_near = windows[layer] > 0;
        let shares = lender(b, &windows, n_shared, layer)?;
        let (n_head, n_kv) = (c.n_head[layer], c.n_head_kv[shares.unwrap_or(layer)]);
        if n_head == 0 || n_kv == 0 || n_head % n_kv != 0 {
            let what = format!("layer {layer} with {n_head} query heads and {n_kv} KV heads");
            return Err(ModelError::Unsupported { what });
        }
        out.push(Attention {
            n_head,
            n_kv,
            d: if is_near { d_near } else { c.d_head },
            d_v: if is_near { d_near } else { c.d_head },
            rope: Some(if is_near { near } else { far }),
            norm: QkNorm::Heads,
            value_norm: true,
            gate: HeadGate::None,
            clamp: 0.0,
            sub_norm: false,
            scale: 1.0,
            both_ways: false,
            shares,
            score: Score { window: windows[layer], ..Score::scaled(1.0) },
        });
    }
    Ok(out)
}

/// The layer whose keys and values a layer reuses, where the last `n_shared` have none: of the others, the last with a
/// window, or the last without one.
///
/// # Errors
/// [`ModelError::Config`] if that is not the layer that files place there.
pub(super) fn lender(
    b: &Builder<'_>,
    windows: &[u32],
    n_shared: u32,
    layer: usize,
) -> Result<Option<usize>, ModelError> {
    let n_own = b.config.n_layer.saturating_sub(n_shared) as usize;
    if layer < n_own {
        return Ok(None);
    }
    let is_near = windows[layer] > 0;
    let lender = n_own.checked_sub(if is_near { 2 } else { 1 });
    lender.filter(|l| (windows[*l] > 0) == is_near).map(Some).ok_or_else(|| {
        let expected = format!("must leave layers whose keys and values layer {layer} can take");
        b.wrong("attention.shared_kv_layers", n_shared, expected)
    })
}

/// The experts, with input `h`; their router reads the residual stream `x` through its own norm.
fn experts(
    b: &mut Builder<'_>,
    block: &str,
    n_ff: u32,
    x: ValueId,
    h: ValueId,
) -> Result<ValueId, ModelError> {
    let n_embd = b.config.n_embd;
    let weight = b.vector(&format!("{block}.ffn_gate_inp.scale"), n_embd)?;
    let routing = softmax_routing(b);
    let router = b.bare(&format!("{block}.ffn_gate_inp.weight"), routing.n_expert, n_embd)?;
    let r = b.norm(x, weight);
    let logits = b.mul(r, router);
    let logits = b.scaled(logits, 1.0 / (n_embd as f32).sqrt());
    Experts { act: Act::Geglu, routing, ..Experts::new(b, n_ff) }.build_routed(b, block, h, logits)
}
