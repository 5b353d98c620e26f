//! EXAONE 4 with experts.
//!
//! Norms of the heads of q and k; windows in three of four layers, which alone have RoPE; some dense layers, then MoE
//! with a shared expert.

use chaski_graph::{Gate, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Layer, Moe, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let windows = b.windows(128, 4)?;
    let m = Moe { n_shared: Some(1), ..Moe::new(b, Gate::Sigmoid)? };
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, (windows[i] > 0).then_some(rope))?;
        let score = Score { window: windows[i], ..attention.score };
        let attention = Attention { score, norm: QkNorm::Heads, ..attention };
        Ok(Layer { attention, feed_forward: m.layer(b, i)?, norms: Norms::BEFORE })
    })
}
