//! EmbeddingGemma: Gemma 3 with attention in both directions, also within windows.

use chaski_graph::{Act, Rope, RopePairing, Score};

use super::gemma::decoder_of;
use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    let base = b.f32("rope.freq_base_swa")?.map_or(all.base, f64::from);
    let near = Rope { base, ..all.clone() };
    let (all, near) = (b.add_rope(all), b.add_rope(near));
    b.needs("attention.sliding_window")?;
    let windows = b.windows(0, 6)?;
    decoder(b, &Decoder { encodes: Some("output_norm"), ..decoder_of(b) }, |b, i| {
        let rope = if windows[i] > 0 { near } else { all };
        let attention = Attention::new(b, i, Some(rope))?;
        let score = Score { window: windows[i], ..attention.score };
        let attention = Attention { score, norm: QkNorm::Heads, both_ways: true, ..attention };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Geglu), norms: Norms::AROUND })
    })
}
