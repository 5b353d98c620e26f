//! DeepSeek V2, V3 and R1, and models with the same layers: Kimi K2, GLM 4.7 Flash, Mistral 4; with short contexts
//! DeepSeek V3.2 and GLM 5.
//!
//! Latent attention (MLA); some dense layers, then MoE with groups and shared experts.

use chaski_graph::{Act, Gate, Rope, RopePairing, Score, Warmth};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{
    Decoder, Experts, FeedForward, LatentAttention, LatentSizes, Layer, Norms, Shared, decoder, routing,
};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    // Files of early models do not specify the gate of the router.
    let is_glm = matches!(b.config.n_layer, 47 | 48) && b.config.n_vocab == 154_880;
    of(b, if is_glm { Gate::Sigmoid } else { Gate::Softmax })
}

/// Models whose indexer selects the tokens that a token attends to. In contexts no longer than the selection it selects
/// all of them, so it is not built.
pub(super) fn build_sparse(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let key = "attention.indexer.top_k";
    let most = b.u32(key)?.ok_or_else(|| b.wrong(key, "none", "must be there"))?;
    b.limit_context(most)?;
    of(b, Gate::Sigmoid)
}

fn of(b: &mut Builder<'_>, gate: Gate) -> Result<(), ModelError> {
    let c = b.config;
    let sizes = LatentSizes::new(b.metadata, c)?;
    let (rope, scale) = rope_of(b, &sizes)?;
    let rope = b.add_rope(rope);
    let by = b.f32("attention.temperature_scale")?.unwrap_or(0.0);
    let run = b.u32("attention.temperature_length")?.filter(|n| *n > 0).unwrap_or(c.n_ctx_orig);
    let warmth = (by != 0.0).then_some(Warmth { by, run: run.max(1) });
    let score = Score { warmth, ..Score::scaled(scale) };
    let q_rank = b.u32("attention.q_lora_rank")?.filter(|n| *n > 0);
    if let Some(n) = q_rank.filter(|n| *n > 1 << 16) {
        return Err(b.wrong("attention.q_lora_rank", n, "must be at most 65536"));
    }
    let n_dense = b.u32("leading_dense_block_count")?.unwrap_or(0) as usize;
    let n_ff = b.u32("expert_feed_forward_length")?;
    let n_shared = b.u32("expert_shared_count")?.unwrap_or(0);
    let routing = routing(b, gate)?;
    decoder(b, &Decoder::RMS, |b, i| {
        // Small models have a single matrix for q.
        let has_one = b.has(&format!("blk.{i}.attn_q.weight"));
        let q_rank = if has_one { None } else { q_rank };
        let n_ff = n_ff.unwrap_or(b.config.n_ff[i]);
        let too_wide = || b.wrong("expert_shared_count", n_shared, "must be less");
        let shared = match n_ff.checked_mul(n_shared).filter(|n| *n <= 1 << 22) {
            Some(0) => Shared::None,
            Some(n) => Shared::Plain(n),
            None => return Err(too_wide()),
        };
        let feed_forward = if i < n_dense || b.config.n_expert == 0 {
            FeedForward::Gated(Act::Swiglu)
        } else {
            FeedForward::Experts(Experts { routing, shared, ..Experts::new(b, n_ff) })
        };
        let attention = LatentAttention { sizes, q_rank, rope, score };
        Ok(Layer { attention, feed_forward, norms: Norms::BEFORE })
    })
}

/// RoPE parameters, and the factor of scores.
///
/// YaRN increases both with the scaling s. If `yarn_log_multiplier` is given (m is ten times it), RoPE has no magnitude
/// of its own, and scores have the factor (1 + 0.1 m ln(s))^2.
fn rope_of(b: &Builder<'_>, sizes: &LatentSizes) -> Result<(Rope, f32), ModelError> {
    let mut rope = b.rope(RopePairing::Norm)?;
    let log = (1.0 / rope.freq_scale).ln().max(0.0);
    let multiplier = b.f32("rope.scaling.yarn_log_multiplier")?.map_or(0.0, |m| 10.0 * f64::from(m));
    if multiplier != 0.0 && rope.ext_factor != 0.0 {
        rope.magnitude /= 1.0 + 0.1 * log;
    }
    let scale = rope.magnitude * (1.0 + 0.1 * multiplier * log);
    let d = f64::from(sizes.plain + sizes.n_rot);
    Ok((rope, (scale * scale / d.sqrt()) as f32))
}
