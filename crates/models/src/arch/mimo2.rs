//! MiMo V2 Flash, and Step 3.5 Flash.
//!
//! Values may be narrower than keys; NeoX RoPE on part of a head; windows in most layers, with another RoPE base; dense
//! layers, and MoE layers, which have a router. MiMo has attention sinks in some layers; Step has a gate per head, a
//! shared expert, and clamped gates in some layers.

use chaski_graph::recurrent::GateAct;
use chaski_graph::{Gate, Rope, RopePairing, Routing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, HeadGate, Layer, Moe, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    let near = near(b, &all, all.n_rot)?;
    let ropes = [b.add_rope(all), b.add_rope(near)];
    let windows = b.windows(0, 0)?;
    let scale = b.f32("attention.value_scale")?.filter(|v| *v != 0.0).unwrap_or(1.0);
    let m = Moe::new(b, Gate::Sigmoid)?;
    let routing = Routing { gate: Gate::Sigmoid, norm: Some(Routing::CLAMP), ..m.routing };
    let m = Moe { routing, n_shared: None, shared_ff: None, ..m };
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(ropes[usize::from(windows[i] > 0)]))?;
        let sinks = b.has(&format!("blk.{i}.attn_sinks.weight"));
        let score = Score { window: windows[i], sinks, ..attention.score };
        let n_dense = if has_router(b, i) { 0 } else { u32::MAX };
        let feed_forward = Moe { n_dense, ..m }.layer(b, i)?;
        Ok(Layer { attention: Attention { score, scale, ..attention }, feed_forward, norms: Norms::BEFORE })
    })
}

/// Step 3.5.
pub(super) fn build_step(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let whole = b.rope(RopePairing::Neox)?;
    // Layers without windows apply RoPE to half as many channels.
    let n_near = b.u32("rope.dimension_count_swa")?.unwrap_or(whole.n_rot);
    if n_near % 2 != 0 || n_near > b.config.d_head || whole.n_rot % 4 != 0 {
        return Err(b.wrong(
            "rope.dimension_count_swa",
            n_near,
            "must be even and at most the head's channels",
        ));
    }
    let near = near(b, &whole, n_near)?;
    let all = Rope { n_rot: whole.n_rot / 2, ..whole };
    let ropes = [b.add_rope(all), b.add_rope(near)];
    let windows = b.windows(0, 0)?;
    let n = windows.len();
    let limits = |key: &str| {
        let key = format!("{}.{key}", b.config.arch);
        match b.metadata.contains(&key) {
            true => b.metadata.per_layer::<f32>(&key, n),
            false => Ok(vec![0.0; n]),
        }
    };
    let (limits, shared_limits) = (limits("swiglu_clamp_exp")?, limits("swiglu_clamp_shexp")?);
    // Smaller limits mean none.
    let limit = |list: &[f32], i: usize| if list[i] > 1e-6 { list[i] } else { 0.0 };
    let m = Moe { n_shared: None, ..Moe::new(b, Gate::Sigmoid)? };
    decoder(b, &Decoder::RMS, |b, i| {
        let has = |stem: &str| b.has(&format!("blk.{i}.{stem}.weight"));
        let attention = Attention::new(b, i, Some(ropes[usize::from(windows[i] > 0)]))?;
        let score = Score { window: windows[i], ..attention.score };
        let gate = if has("attn_gate") { HeadGate::Heads(GateAct::Sigmoid) } else { HeadGate::None };
        let norm = if has("attn_q_norm") { QkNorm::Heads } else { QkNorm::None };
        let attention = Attention { score, gate, norm, ..attention };
        let shared_limit = limit(&shared_limits, i);
        let feed_forward = if has_router(b, i) {
            let limits = [limit(&limits, i), shared_limit];
            FeedForward::Experts(Experts { limits, ..m.experts(b, i)? })
        } else {
            FeedForward::Limited(shared_limit)
        };
        Ok(Layer { attention, feed_forward, norms: Norms::BEFORE })
    })
}

/// RoPE of `n_rot` channels in layers with windows, which are not interpolated.
fn near(b: &Builder<'_>, all: &Rope, n_rot: u32) -> Result<Rope, ModelError> {
    let base = b.f32("rope.freq_base_swa")?.unwrap_or(10_000.0).into();
    Ok(Rope { base, n_rot, freq_scale: 1.0, factors: None, ..all.clone() })
}

fn has_router(b: &Builder<'_>, layer: usize) -> bool {
    b.has(&format!("blk.{layer}.ffn_gate_inp.weight"))
}
