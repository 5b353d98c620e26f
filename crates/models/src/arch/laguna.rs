//! Laguna.
//!
//! Norms of heads, windows in all but the first of four layers, which have unscaled RoPE, gates per head or per channel
//! of attention's output; some dense layers, then MoE with a shared expert.

use chaski_graph::recurrent::GateAct;
use chaski_graph::{Gate, Rope, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, HeadGate, Layer, Moe, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    let base = b.f32("rope.freq_base_swa")?.map_or(all.base, f64::from);
    let n_rot = b.u32("rope.dimension_count_swa")?.unwrap_or(all.n_rot);
    if n_rot % 2 != 0 || n_rot > b.config.d_head {
        return Err(b.wrong(
            "rope.dimension_count_swa",
            n_rot,
            "must be even and at most the head's channels",
        ));
    }
    let near = Rope::plain(n_rot, RopePairing::Neox, base);
    let (all, near) = (b.add_rope(all), b.add_rope(near));
    let windows = b.windows_after_first(0, 4)?;
    let m = Moe::new(b, Gate::Sigmoid)?;
    let m = Moe { n_shared: m.n_shared.or(Some(1)), ..m };
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(if windows[i] > 0 { near } else { all }))?;
        let score = Score { window: windows[i], ..attention.score };
        let n_gate = b.n_row(&format!("blk.{i}.attn_gate.weight"));
        let gate = match n_gate == Some(attention.n_head.into()) {
            true => HeadGate::Heads(GateAct::Softplus),
            false => HeadGate::Channels(GateAct::Softplus),
        };
        let attention = Attention { score, norm: QkNorm::Heads, gate, ..attention };
        Ok(Layer { attention, feed_forward: m.layer(b, i)?, norms: Norms::BEFORE })
    })
}
