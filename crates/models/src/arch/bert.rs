//! BERT and encoders after it: E5, BGE, MiniLM, XLM-RoBERTa, Nomic Embed, Jina Embeddings.
//!
//! Attention in both directions, norms after the sums with the residual stream. BERT has a table of positions, Jina 2
//! ALiBi, the others RoPE. All tokens are of type 0.

use chaski_graph::{Act, Function, Gate, NormKind, Op, RopePairing, Routing, Score, ValueId};

use crate::build::{Builder, Rows};
use crate::error::ModelError;
use crate::layers::{Attend as _, Attention, FeedForward, QkNorm, softmax_routing};

/// Differences between the families.
struct Family {
    /// Positions from a table.
    positions: bool,
    /// Index of the RoPE parameters, if any.
    rope: Option<usize>,
    /// ALiBi: the largest exponent of a head's slope; 0: none.
    max_bias: f32,
    /// Feed-forward part of a layer without experts.
    feed_forward: fn(&Builder<'_>, usize) -> FeedForward,
    /// Every so many layers the second has experts; 0: none has.
    experts_every: u32,
}

fn gelu(_: &Builder<'_>, _: usize) -> FeedForward {
    FeedForward::plain("gelu")
}

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let family = Family { positions: true, rope: None, max_bias: 0.0, feed_forward: gelu, experts_every: 0 };
    layers(b, &family)
}

pub(super) fn build_nomic(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let family = rotary(b, |_, _| FeedForward::Gated(Act::Swiglu))?;
    layers(b, &family)
}

/// Nomic Embed v2, where every second layer has experts.
pub(super) fn build_nomic_moe(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let experts_every = b.u32("moe_every_n_layers")?.unwrap_or(0);
    let family = Family { experts_every, ..rotary(b, gelu)? };
    layers(b, &family)
}

/// Jina Embeddings v2, whose versions differ in the feed-forward part.
pub(super) fn build_jina2(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let feed_forward = |b: &Builder<'_>, layer: usize| {
        let up = b.n_row(&format!("blk.{layer}.ffn_up.weight"));
        match b.has(&format!("blk.{layer}.ffn_gate.weight")) {
            true => FeedForward::Gated(Act::Geglu),
            false if up == Some(2 * u64::from(b.config.n_ff[layer])) => FeedForward::Joined(Act::Geglu),
            false => FeedForward::plain("gelu"),
        }
    };
    let family = Family { positions: false, rope: None, max_bias: 8.0, feed_forward, experts_every: 0 };
    layers(b, &family)
}

pub(super) fn build_jina3(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let family = rotary(b, gelu)?;
    layers(b, &family)
}

fn rotary(
    b: &mut Builder<'_>,
    feed_forward: fn(&Builder<'_>, usize) -> FeedForward,
) -> Result<Family, ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = Some(b.add_rope(rope));
    Ok(Family { positions: false, rope, max_bias: 0.0, feed_forward, experts_every: 0 })
}

fn layers(b: &mut Builder<'_>, family: &Family) -> Result<(), ModelError> {
    let c = b.config;
    let mut x = embeddings(b, family)?; // [n_embd]
    for i in 0..c.n_layer as usize {
        let block = format!("blk.{i}");
        let a = attention(b, family, i)?.build(b, &block, x)?;
        let sum = b.add(x, a);
        let mut h = b.norm_of(sum, &format!("{block}.attn_output_norm"), NormKind::Norm)?;
        let second = format!("{block}.attn_norm_2");
        if b.has(&format!("{second}.weight")) {
            let sum = b.add(h, x);
            h = b.norm_of(sum, &second, NormKind::Norm)?;
        }
        let has_experts = family.experts_every > 0 && i as u32 % family.experts_every == 1;
        let f = match has_experts {
            true => experts(b, &block, i, h)?,
            false => (family.feed_forward)(b, i).build(b, &block, i, h)?,
        };
        let sum = b.add(h, f);
        x = b.norm_of(sum, &format!("{block}.layer_output_norm"), NormKind::Norm)?;
    }
    b.encoded(x);
    Ok(())
}

/// Embeddings of tokens, of type 0 and of positions, and their norm.
fn embeddings(b: &mut Builder<'_>, family: &Family) -> Result<ValueId, ModelError> {
    let c = b.config;
    let table = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(table);
    if let Some(n) = b.n_row("token_types.weight").and_then(|n| u32::try_from(n).ok()) {
        let [of_0] = b.parts("token_types", n, [Rows::consecutive(0, 1)], c.n_embd)?;
        x = b.add_weight(x, of_0.weight);
    }
    if family.positions {
        let table = b.matrix("position_embd.weight", c.n_ctx_train, c.n_embd)?;
        b.limit_context(c.n_ctx_train)?;
        let p = b.push(Op::EmbedPosition { table }, c.n_embd);
        x = b.add(x, p);
    }
    b.norm_of(x, "token_embd_norm", NormKind::Norm)
}

fn attention(b: &Builder<'_>, family: &Family, layer: usize) -> Result<Attention, ModelError> {
    let attention = Attention::new(b, layer, family.rope)?;
    let norm = match b.has(&format!("blk.{layer}.attn_q_norm.weight")) {
        true => QkNorm::LayerWhole,
        false => QkNorm::None,
    };
    let score = Score { max_bias: family.max_bias, ..attention.score };
    Ok(Attention { score, norm, both_ways: true, ..attention })
}

/// Experts without gates: the sum of down_e gelu(up_e x), weighted by a softmax over all experts.
fn experts(b: &mut Builder<'_>, block: &str, layer: usize, x: ValueId) -> Result<ValueId, ModelError> {
    let (n_embd, n_ff, n_expert) = (b.config.n_embd, b.config.n_ff[layer], b.config.n_expert);
    let scale = b.f32("expert_weights_scale")?.filter(|s| *s != 0.0).unwrap_or(1.0);
    let routing = Routing { gate: Gate::Softmax, norm: None, scale, ..softmax_routing(b) };
    let router = b.linear(&format!("{block}.ffn_gate_inp"), n_expert, n_embd)?;
    let up = b.experts(&format!("{block}.ffn_up_exps"), n_expert, n_ff, n_embd)?;
    let down = b.experts(&format!("{block}.ffn_down_exps"), n_expert, n_embd, n_ff)?;
    let logits = b.mul(x, router); // [n_expert]
    let route = b.route(logits, None, routing); // [n_used, 2]
    let h = b.mul_id(x, route, up); // [n_used, n_ff]
    let f = Function::find("gelu").expect("a row of the table");
    let h = b.push(Op::Unary { x: h, f, params: [0.0; 4] }, n_ff);
    let y = b.mul_id(h, route, down); // [n_used, n_embd]
    Ok(b.push(Op::MoeReduce { x: y, route }, n_embd))
}
