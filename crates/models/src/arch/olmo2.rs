//! OLMo 2 and 3.
//!
//! Norms after both parts, norms of q and k over all heads, NeoX RoPE; OLMo 3 has windows in three of four layers,
//! which have unscaled RoPE.

use chaski_graph::{Act, Rope, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    let near = Rope::plain(all.n_rot, RopePairing::Neox, all.base);
    let (all, near) = (b.add_rope(all), b.add_rope(near));
    let windows = b.windows(0, 4)?;
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(if windows[i] > 0 { near } else { all }))?;
        let score = Score { window: windows[i], ..attention.score };
        let attention = Attention { score, norm: QkNorm::Whole, ..attention };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::AFTER })
    })
}
