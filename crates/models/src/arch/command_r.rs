//! Command R and R+, and with windows Command R7B, Command A and Aya.
//!
//! One layer norm before attention and feed-forward part, which run in parallel; RoPE of adjacent channels; scaled
//! logits. In models with windows in three of four layers, only those have RoPE.

use chaski_graph::{Act, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    of(b, None)
}

/// Models with sliding windows.
pub(super) fn build_cohere2(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let windows = b.windows(4096, 4)?;
    of(b, Some(windows))
}

fn of(b: &mut Builder<'_>, windows: Option<Vec<u32>>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    let logit_scale = b.f32("logit_scale")?.filter(|v| *v != 0.0).unwrap_or(1.0);
    let norm = if b.has("blk.0.attn_q_norm.weight") { QkNorm::LayerHeads } else { QkNorm::None };
    decoder(b, &Decoder { logit_scale, ..Decoder::LAYER }, |b, i| {
        let window = windows.as_ref().map(|w| w[i]);
        let attention = Attention::new(b, i, (window != Some(0)).then_some(rope))?;
        let score = Score { window: window.unwrap_or(0), ..attention.score };
        let attention = Attention { score, norm, ..attention };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::ONE })
    })
}
