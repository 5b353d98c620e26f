//! BLOOM, MPT, Jais and Refact: ALiBi instead of RoPE.
//!
//! Jais divides scores by the width of a head; Jais and Refact have gates.

use chaski_graph::{Act, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

/// ALiBi scores: `max_bias` is the largest exponent of a head's slope.
fn distant(attention: Attention, max_bias: f32) -> Attention {
    Attention { score: Score { max_bias, ..attention.score }, ..attention }
}

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    decoder(b, &Decoder { embed_norm: true, ..Decoder::LAYER }, |b, i| {
        let attention = distant(Attention::new(b, i, None)?, 8.0);
        Ok(Layer { attention, feed_forward: FeedForward::plain("gelu"), norms: Norms::BEFORE })
    })
}

/// MPT, which may use a table of positions instead.
pub(super) fn build_mpt(b: &mut Builder<'_>) -> Result<(), ModelError> {
    for stem in ["attn_q_norm.weight", "ffn_act.scales"].map(|end| format!("blk.0.{end}")) {
        if b.has(&stem) {
            return Err(ModelError::Unsupported { what: format!("the tensor `{stem}`") });
        }
    }
    let clamp = b.f32("attention.clamp_kqv")?.unwrap_or(0.0).max(0.0);
    let max_bias = b.f32("attention.max_alibi_bias")?.unwrap_or(0.0);
    let positions = b.has("position_embd.weight");
    decoder(b, &Decoder { positions, ..Decoder::LAYER }, |b, i| {
        let attention = Attention { clamp, ..distant(Attention::new(b, i, None)?, max_bias) };
        Ok(Layer { attention, feed_forward: FeedForward::plain("gelu"), norms: Norms::BEFORE })
    })
}

/// Jais 1.
pub(super) fn build_jais(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let max_bias = b.f32("attention.max_alibi_bias")?.unwrap_or(0.0);
    decoder(b, &Decoder::LAYER, |b, i| {
        let attention = Attention::new(b, i, None)?;
        let score = Score::scaled(1.0 / attention.d as f32);
        let attention = distant(Attention { score, ..attention }, max_bias);
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}

/// Refact.
pub(super) fn build_refact(b: &mut Builder<'_>) -> Result<(), ModelError> {
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = distant(Attention::new(b, i, None)?, 8.0);
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
