//! DeepSeek 1, dots.llm1, Ling 1 and 2, and DeepSeek OCR: some dense layers, then MoE with shared experts.
//!
//! They differ in RoPE, norms of heads, and routing.

use chaski_graph::{Gate, RopePairing, Routing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Layer, Moe, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let m = Moe::new(b, Gate::Softmax)?;
    let routing = Routing { gate: Gate::Softmax, norm: None, ..m.routing };
    with(b, RopePairing::Norm, QkNorm::None, &Moe { routing, ..m })
}

/// The text model of DeepSeek OCR.
pub(super) fn build_ocr(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let m = Moe::new(b, Gate::Softmax)?;
    with(b, RopePairing::Neox, QkNorm::None, &m)
}

/// dots.llm1.
pub(super) fn build_dots(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let m = Moe::new(b, Gate::Sigmoid)?;
    with(b, RopePairing::Neox, QkNorm::Heads, &m)
}

/// Ling 1, with MoE in all layers.
pub(super) fn build_ling(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let m = Moe::new(b, Gate::Softmax)?;
    let routing = Routing { gate: Gate::Softmax, ..m.routing };
    with(b, RopePairing::Norm, QkNorm::None, &Moe { routing, n_dense: 0, ..m })
}

/// Ling 2, whose files give the width of a single shared expert.
pub(super) fn build_ling2(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let m = Moe::new(b, Gate::Sigmoid)?;
    let each = m.shared_ff.or(m.n_ff).unwrap_or(0);
    let shared_ff = Some(each.saturating_mul(m.n_shared.unwrap_or(0)));
    with(b, RopePairing::Neox, QkNorm::Heads, &Moe { shared_ff, ..m })
}

/// Hunyuan 3, whose layers without a router are dense.
pub(super) fn build_hunyuan(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let m = Moe::new(b, Gate::Sigmoid)?;
    let router = |i: &u32| b.has(&format!("blk.{i}.ffn_gate_inp.weight"));
    let n_dense = (0..b.config.n_layer).find(router).unwrap_or(b.config.n_layer);
    with(b, RopePairing::Neox, QkNorm::Heads, &Moe { n_dense, n_shared: Some(1), ..m })
}

fn with(b: &mut Builder<'_>, pairing: RopePairing, norm: QkNorm, m: &Moe) -> Result<(), ModelError> {
    let rope = b.rope(pairing)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: m.layer(b, i)?, norms: Norms::BEFORE })
    })
}
