//! Spark 2.5.
//!
//! Llama with NeoX RoPE, windows in some layers, GELU gates, and a gate per head.

use chaski_graph::recurrent::GateAct;
use chaski_graph::{Act, Rope, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, HeadGate, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    let base = b.f32("rope.freq_base_swa")?.map_or(all.base, f64::from);
    let near = Rope { base, ..all.clone() };
    let (all, near) = (b.add_rope(all), b.add_rope(near));
    let windows = b.windows(0, 4)?;
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(if windows[i] > 0 { near } else { all }))?;
        let score = Score { window: windows[i], ..attention.score };
        let attention = Attention { score, gate: HeadGate::Heads(GateAct::Sigmoid), ..attention };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Geglu), norms: Norms::BEFORE })
    })
}
