//! PLaMo 1 and 3.
//!
//! PLaMo: attention and feed-forward part in parallel after one norm. PLaMo 3: norms around both parts and of heads,
//! windows in seven of eight layers, gate and up in one matrix.

use chaski_graph::{Act, Rope, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::ONE })
    })
}

/// PLaMo 3.
pub(super) fn build3(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    // Layers with windows are not interpolated.
    let base = b.f32("rope.freq_base_swa")?.unwrap_or(10_000.0).into();
    let near = Rope { base, freq_scale: 1.0, ..all.clone() };
    let (all, near) = (b.add_rope(all), b.add_rope(near));
    let windows = b.windows(0, 8)?;
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(if windows[i] > 0 { near } else { all }))?;
        let score = Score { window: windows[i], ..attention.score };
        let attention = Attention { score, norm: QkNorm::Heads, ..attention };
        Ok(Layer { attention, feed_forward: FeedForward::Joined(Act::Swiglu), norms: Norms::AROUND })
    })
}
