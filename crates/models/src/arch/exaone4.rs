//! EXAONE 4.
//!
//! Norms after both parts, norms of the heads of q and k, NeoX RoPE; models with windows have RoPE only there.

use chaski_graph::{Act, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    // The 32B model has windows even if its file does not say so.
    let default = if b.config.n_layer == 64 { 4096 } else { 0 };
    let windows = b.windows(default, 4)?;
    let has_windows = windows.iter().any(|w| *w > 0);
    decoder(b, &Decoder::RMS, |b, i| {
        let rotates = windows[i] > 0 || !has_windows;
        let attention = Attention::new(b, i, rotates.then_some(rope))?;
        let score = Score { window: windows[i], ..attention.score };
        let attention = Attention { score, norm: QkNorm::Heads, ..attention };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::AFTER })
    })
}
