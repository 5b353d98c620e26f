//! Layers that families share.

use chaski_kernels::ops::attention::Score;
use chaski_kernels::ops::glu::Act;
use chaski_kernels::ops::topk_moe::{Gate, Routing};
use chaski_runtime::graph::{Op, ValueId};

use crate::arch::Builder;
use crate::error::ModelError;

/// Causal self-attention with rotation: q, k, v, cache, scores, output.
///
/// `x`: normalised input `[n_embd]`; returns what is added to the residual stream.
///
/// # Errors
/// [`ModelError::NoTensor`], [`ModelError::Shape`].
pub(crate) fn attention(
    b: &mut Builder<'_>,
    block: &str,
    layer: usize,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    attention_of(b, block, layer, AttentionKind::plain(b), x)
}

/// How attention differs between families.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionKind {
    /// What products of queries and keys are multiplied by.
    pub(crate) scale: f32,
    /// The output matrix may have a bias.
    pub(crate) output_bias: bool,
}

impl AttentionKind {
    /// What most families do.
    pub(crate) fn plain(b: &Builder<'_>) -> Self {
        AttentionKind { scale: 1.0 / (b.config.d_head as f32).sqrt(), output_bias: true }
    }
}

/// [`attention`] of another kind.
///
/// # Errors
/// [`ModelError::NoTensor`], [`ModelError::Shape`].
pub(crate) fn attention_of(
    b: &mut Builder<'_>,
    block: &str,
    layer: usize,
    kind: AttentionKind,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let c = b.config;
    let (n_head, n_kv, d) = (c.n_head[layer], c.n_head_kv[layer], c.d_head);
    if n_kv == 0 || n_head == 0 || c.d_head_v != d {
        return Err(ModelError::Unsupported {
            what: format!(
                "layer {layer} with {n_head} query heads, {n_kv} KV heads, {d} and {} channels",
                c.d_head_v
            ),
        });
    }
    let n_embd = c.n_embd;
    let [q, k, v] = b.qkv(block, [n_head * d, n_kv * d, n_kv * d], n_embd)?;
    let output = b.linear(&format!("{block}.attn_output"), n_embd, n_head * d)?;
    let output = if kind.output_bias { output } else { output.without_bias() };
    let (q, k, v) = (b.mul(x, q), b.mul(x, k), b.mul(x, v)); // [n_head, d], [n_kv, d], [n_kv, d]
    let q = b.push(Op::Rope { x: q, d }, n_head * d);
    let k = b.push(Op::Rope { x: k, d }, n_kv * d);
    let kv = b.kv_layer(n_kv, d, d);
    b.push(Op::KvWrite { k, v, layer: kv }, 0);
    let score = Score::scaled(kind.scale);
    let a = b.push(Op::Attention { q, layer: kv, n_head, score, sinks: None }, n_head * d);
    Ok(b.mul(a, output)) // [n_embd]
}

/// Gated feed-forward part: down(act(gate x) * (up x)).
///
/// # Errors
/// [`ModelError::NoTensor`], [`ModelError::Shape`].
pub(crate) fn feed_forward(
    b: &mut Builder<'_>,
    block: &str,
    layer: usize,
    act: Act,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    gated_part(b, block, "", b.config.n_ff[layer], act, x)
}

/// Gated feed-forward part `n_ff` wide, of the tensors `ffn_gate`, `ffn_up` and `ffn_down` with `suffix`.
///
/// # Errors
/// [`ModelError::NoTensor`], [`ModelError::Shape`].
pub(crate) fn gated_part(
    b: &mut Builder<'_>,
    block: &str,
    suffix: &str,
    n_ff: u32,
    act: Act,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let n_embd = b.config.n_embd;
    let gate = b.linear(&format!("{block}.ffn_gate{suffix}"), n_ff, n_embd)?;
    let up = b.linear(&format!("{block}.ffn_up{suffix}"), n_ff, n_embd)?;
    let down = b.linear(&format!("{block}.ffn_down{suffix}"), n_embd, n_ff)?;
    let (gate, up) = (b.mul(x, gate), b.mul(x, up)); // [n_ff] each
    let h = b.push(Op::Glu { gate, up, act }, n_ff);
    Ok(b.mul(h, down)) // [n_embd]
}

/// The routing of most families: a softmax over all experts, the weights of the chosen divided by their sum.
pub(crate) fn softmax_routing(b: &Builder<'_>) -> Routing {
    let c = b.config;
    Routing {
        gate: Gate::Softmax,
        n_expert: c.n_expert,
        n_used: c.n_expert_used,
        n_group: 1,
        n_group_used: 1,
        norm: Some(Routing::CLAMP),
        scale: 1.0,
    }
}

/// Feed-forward part of experts that are `n_ff` wide: each token goes through those that `routing` chooses by the
/// router `ffn_gate_inp`, with `exp_probs_b` for choosing if the file has it.
///
/// # Errors
/// [`ModelError::NoTensor`], [`ModelError::Shape`].
pub(crate) fn experts(
    b: &mut Builder<'_>,
    block: &str,
    n_ff: u32,
    act: Act,
    routing: Routing,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let (n_embd, n_expert) = (b.config.n_embd, routing.n_expert);
    let router = b.linear(&format!("{block}.ffn_gate_inp"), n_expert, n_embd)?;
    let bias = format!("{block}.exp_probs_b.bias");
    let bias = if b.has(&bias) { Some(b.vector(&bias, n_expert)?) } else { None };
    let [gate, up] = b.gate_up_experts(block, n_expert, n_ff, n_embd)?;
    let down = b.experts(&format!("{block}.ffn_down_exps"), n_expert, n_embd, n_ff)?;
    let logits = b.mul(x, router); // [n_expert]
    let route = b.route(logits, bias, routing); // [n_used, 2]
    let (gate, up) = (b.mul_id(x, route, gate), b.mul_id(x, route, up)); // [n_used, n_ff] each
    let h = b.push(Op::Glu { gate, up, act }, n_ff);
    let y = b.mul_id(h, route, down); // [n_used, n_embd]
    Ok(b.push(Op::MoeReduce { x: y, route }, n_embd))
}
