//! Layers that families share.

use chaski_kernels::ops::attention::Score;
use chaski_kernels::ops::glu::Act;
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
    let (q, k, v) = (b.mul(x, q), b.mul(x, k), b.mul(x, v)); // [n_head, d], [n_kv, d], [n_kv, d]
    let q = b.push(Op::Rope { x: q, d }, n_head * d);
    let k = b.push(Op::Rope { x: k, d }, n_kv * d);
    let kv = b.kv_layer(n_kv, d, d);
    b.push(Op::KvWrite { k, v, layer: kv }, 0);
    let score = Score::scaled(1.0 / (d as f32).sqrt());
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
    let (n_embd, n_ff) = (b.config.n_embd, b.config.n_ff[layer]);
    let gate = b.linear(&format!("{block}.ffn_gate"), n_ff, n_embd)?;
    let up = b.linear(&format!("{block}.ffn_up"), n_ff, n_embd)?;
    let down = b.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?;
    let (gate, up) = (b.mul(x, gate), b.mul(x, up)); // [n_ff] each
    let h = b.push(Op::Glu { gate, up, act }, n_ff);
    Ok(b.mul(h, down)) // [n_embd]
}
