//! Arcee Trinity.
//!
//! Norms around both parts and of heads; windows in three of four layers, which alone have RoPE; a gate per channel of
//! attention's output. Some dense layers, then MoE.

use chaski_graph::recurrent::GateAct;
use chaski_graph::{Gate, Rope, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, HeadGate, Layer, Moe, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let base = b.f32("rope.freq_base_swa")?.map_or(rope.base, f64::from);
    let near = Rope { base, ..rope.clone() };
    let (all, near) = (b.add_rope(rope), b.add_rope(near));
    let windows = b.windows(0, 4)?;
    let m = Moe::new(b, Gate::Sigmoid)?;
    let d = Decoder { embed_scale: (b.config.n_embd as f32).sqrt(), ..Decoder::RMS };
    decoder(b, &d, |b, i| {
        // No key gives the layers with RoPE.
        let rope = (i % 4 != 3).then_some(if windows[i] > 0 { near } else { all });
        let attention = Attention::new(b, i, rope)?;
        let score = Score { window: windows[i], ..attention.score };
        let gate = HeadGate::Channels(GateAct::Sigmoid);
        let attention = Attention { score, norm: QkNorm::Heads, gate, ..attention };
        Ok(Layer { attention, feed_forward: m.layer(b, i)?, norms: Norms::AROUND })
    })
}
