//! Gemma 3.
//!
//! Gemma 2 without softcapped scores, with norms of the heads of q and k, and different RoPE in layers with windows.

use chaski_graph::{Act, Rope, RopePairing, Score};

use super::gemma::{decoder_of, score_scale};
use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    // RoPE scaling does not apply to layers with windows.
    let base = b.f32("rope.freq_base_swa")?.unwrap_or(10_000.0);
    let near = Rope::plain(all.n_rot, RopePairing::Neox, base.into());
    let (all, near) = (b.add_rope(all), b.add_rope(near));
    let d = Decoder { logit_softcap: b.f32("final_logit_softcapping")?.unwrap_or(0.0), ..decoder_of(b) };
    let windows = b.windows(0, 6)?;
    decoder(b, &d, |b, i| {
        let rope = if windows[i] > 0 { near } else { all };
        let score = Score { window: windows[i], ..Score::scaled(score_scale(b, 62)) };
        let attention = Attention { score, norm: QkNorm::Heads, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Geglu), norms: Norms::AROUND })
    })
}
