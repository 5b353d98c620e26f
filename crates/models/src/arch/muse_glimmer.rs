//! Muse Glimmer.
//!
//! Norms around both parts (those after them nearly without epsilon), of heads and of the embeddings; windows in three
//! of four layers, which alone have RoPE of adjacent channels; a gate per channel of attention's output.

use chaski_graph::recurrent::GateAct;
use chaski_graph::{Act, Rope, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, HeadGate, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Norm)?;
    let base = b.f32("rope.freq_base_swa")?.map_or(rope.base, f64::from);
    let rope = b.add_rope(Rope { base, ..rope });
    let windows = b.windows(0, 4)?;
    let d = Decoder {
        embed_plain_norm: true,
        after_eps: Some(1e-8),
        logit_scale: b.f32("logit_scale")?.unwrap_or(1.0),
        logit_softcap: b.f32("final_logit_softcapping")?.unwrap_or(0.0),
        ..Decoder::RMS
    };
    decoder(b, &d, |b, i| {
        let attention = Attention::new(b, i, (windows[i] > 0).then_some(rope))?;
        let score = Score { window: windows[i], ..attention.score };
        let gate = HeadGate::Channels(GateAct::Sigmoid);
        let attention = Attention { score, norm: QkNorm::Heads, gate, ..attention };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::AROUND })
    })
}
