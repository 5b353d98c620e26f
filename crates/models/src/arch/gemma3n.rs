//! Gemma 3n, text only.
//!
//! A residual stream of four rows, of which layers process the first (AltUp); per-layer embeddings; a low-rank product
//! beside attention (Laurel); sparse activations in the first layers; the last layers reuse keys and values of earlier
//! ones. Parameters that files lack are equal in both models.

use chaski_graph::altup::AltUp;
use chaski_graph::altup::Kind as Step;
use chaski_graph::{Act, NormKind, Op, Rope, RopePairing, Score, ValueId, WeightId};

use super::gemma4::lender;
use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, FeedForward, PerLayer, QkNorm, softcapped};

/// Rows of the residual stream.
const ROWS: u32 = 4;
/// Rank of Laurel.
const RANK: u32 = 64;
/// Layers with sparse activations: only values this many deviations above the mean, 5 of 100, pass.
const N_SPARSE: usize = 10;
const DEVIATIONS: f32 = 1.644_853_6;
/// Layers with their own keys and values.
const N_OWN: u32 = 20;
/// Limit of the logits.
const SOFTCAP: f32 = 30.0;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let n_embd = c.n_embd;
    let far = b.rope(RopePairing::Neox)?;
    let base = b.f32("rope.freq_base_swa")?.unwrap_or(10_000.0);
    let near = Rope::plain(far.n_rot, RopePairing::Neox, base.into());
    let (far, near) = (b.add_rope(far), b.add_rope(near));
    let windows = b.windows(0, 5)?;
    let n_shared = b.u32("attention.shared_kv_layers")?.unwrap_or(c.n_layer.saturating_sub(N_OWN));
    let n_per_layer = b.u32("embedding_length_per_layer_input")?.unwrap_or(256);
    if n_per_layer == 0 || n_per_layer > 1 << 16 {
        return Err(b.wrong("embedding_length_per_layer_input", n_per_layer, "must be 1 to 65536"));
    }

    let embeddings = b.matrix("token_embd.weight", c.n_vocab, n_embd)?;
    let e = b.embed_scaled(embeddings, (n_embd as f32).sqrt()); // [n_embd]
    let per_layer = PerLayer::new(b, n_per_layer, e)?;
    let project = b.stacked("altup_proj.weight", ROWS - 1, n_embd, n_embd)?;
    let others = b.mul(e, project); // [ROWS - 1, n_embd]
    let mut x = step(b, Step::Spread, e, Some(others), None); // [ROWS, n_embd]
    for (layer, window) in windows.iter().copied().enumerate().take(c.n_layer as usize) {
        let block = format!("blk.{layer}");
        let shares = lender(b, &windows, n_shared, layer)?;
        let attention = Attention::new(b, layer, Some(if window > 0 { near } else { far }))?;
        let attention = Attention {
            n_kv: c.n_head_kv[shares.unwrap_or(layer)],
            norm: QkNorm::Heads,
            value_norm: true,
            shares,
            score: Score { window, ..Score::scaled(1.0) },
            ..attention
        };
        if attention.n_kv == 0 || attention.n_head % attention.n_kv != 0 {
            let what = format!("layer {layer} with {} KV heads of an earlier one", attention.n_kv);
            return Err(ModelError::Unsupported { what });
        }
        x = one_layer(b, &block, layer, &attention, per_layer, x)?;
    }
    let unembed = b.heads("altup_unembd_proj.weight", ROWS - 1, n_embd, n_embd)?;
    let others = (ROWS - 1) * n_embd;
    let rest = b.push(Op::Slice { x, at: n_embd }, others);
    let rest = b.push(Op::MulHeads { x: rest, weight: unembed }, others); // [ROWS - 1, n_embd]
    let x = step(b, Step::Merge, x, Some(rest), None); // [n_embd]
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |b, y| softcapped(b, y, SOFTCAP))
}

/// `x`: `[ROWS, n_embd]`; returns the same after the layer.
fn one_layer(
    b: &mut Builder<'_>,
    block: &str,
    layer: usize,
    attention: &Attention,
    per_layer: PerLayer,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let n_embd = b.config.n_embd;
    let norm = |b: &mut Builder<'_>, x, stem: &str| b.norm_of(x, &format!("{block}.{stem}"), NormKind::Rms);
    let first = |b: &mut Builder<'_>, x| b.push(Op::Slice { x, at: 0 }, n_embd);

    let weight = b.matrix(&format!("{block}.altup_predict_coef.weight"), ROWS * ROWS, ROWS)?;
    let x0 = first(b, x);
    let router = modes(b, block, x0)?;
    let predicted = step(b, Step::Predict, x, None, Some((router, weight)));
    let p0 = first(b, predicted);
    let h = norm(b, p0, "attn_norm")?;

    let down = b.linear(&format!("{block}.laurel_l"), RANK, n_embd)?;
    let up = b.linear(&format!("{block}.laurel_r"), n_embd, RANK)?;
    let l = b.mul(h, down); // [RANK]
    let l = b.mul(l, up); // [n_embd]
    let l = norm(b, l, "laurel_post_norm")?;
    let l = b.add(h, l);

    let a = attention.build(b, block, h)?;
    let a = norm(b, a, "post_attention_norm")?;
    let a = b.add(p0, a);
    let a = b.add(a, l);
    let a = b.scaled(a, 0.5f32.sqrt());

    let h = norm(b, a, "ffn_norm")?;
    let f = match layer < N_SPARSE {
        true => sparse(b, block, b.config.n_ff[layer], h)?,
        false => FeedForward::Gated(Act::Geglu).build(b, block, layer, h)?,
    };
    let f = norm(b, f, "post_ffw_norm")?;
    let y = b.add(a, f);

    let weight = b.matrix(&format!("{block}.altup_correct_coef.weight"), ROWS, ROWS)?;
    let router = modes(b, block, y)?;
    let corrected = step(b, Step::Correct, predicted, Some(y), Some((router, weight)));
    let x0 = first(b, corrected);
    let weight = b.vector(&format!("{block}.altup_correct_scale.weight"), n_embd)?;
    let x0 = b.push(Op::MulWeight { x: x0, weight }, n_embd);
    let t = per_layer.build(b, block, layer, x0)?;
    Ok(step(b, Step::Inject, corrected, Some(t), None))
}

/// An AltUp step of the residual stream.
fn step(
    b: &mut Builder<'_>,
    kind: Step,
    x: ValueId,
    other: Option<ValueId>,
    mix: Option<(ValueId, WeightId)>,
) -> ValueId {
    let n_embd = b.config.n_embd;
    let width = if kind == Step::Merge { n_embd } else { ROWS * n_embd };
    b.push(Op::AltUp(AltUp { kind, x, other, mix, rows: ROWS }), width)
}

/// The router's outputs for a row, `[ROWS]`.
fn modes(b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError> {
    let n_embd = b.config.n_embd;
    let router = b.linear(&format!("{block}.altup_router"), ROWS, n_embd)?;
    let h = b.norm_of(x, &format!("{block}.altup_router_norm"), NormKind::Rms)?;
    let m = b.mul(h, router);
    Ok(b.scaled(m, 1.0 / n_embd as f32))
}

/// The feed-forward part with sparse activations.
fn sparse(b: &mut Builder<'_>, block: &str, n_ff: u32, x: ValueId) -> Result<ValueId, ModelError> {
    let n_embd = b.config.n_embd;
    let gate = b.linear(&format!("{block}.ffn_gate"), n_ff, n_embd)?;
    let up = b.linear(&format!("{block}.ffn_up"), n_ff, n_embd)?;
    let down = b.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?;
    let (gate, up) = (b.mul(x, gate), b.mul(x, up)); // [n_ff] each
    let gate = b.push(Op::Cutoff { x: gate, by: DEVIATIONS }, n_ff);
    let h = b.push(Op::Glu { gate, up, act: Act::Geglu }, n_ff);
    Ok(b.mul(h, down)) // [n_embd]
}
