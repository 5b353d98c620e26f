//! Hunyuan without experts, and Maincoder; the text model of Hunyuan OCR.
//!
//! Llama with NeoX RoPE followed by norms of the heads of q and k.

use chaski_graph::{Act, Rope, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    paired(b, RopePairing::Neox)
}

/// Maincoder, with RoPE of adjacent channels.
pub(super) fn build_maincoder(b: &mut Builder<'_>) -> Result<(), ModelError> {
    paired(b, RopePairing::Norm)
}

/// Vision models: their pairs of channels have positions of four kinds; in text the first three are equal and the
/// fourth is 0.
pub(super) fn build_vl(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let mut rope = b.rope(RopePairing::Neox)?;
    let key = format!("{}.rope.dimension_sections", b.config.arch);
    if let Some(sections) = b.metadata.opt_vec::<i32>(&key)?.filter(|s| s.iter().any(|n| *n > 0)) {
        let four: Option<Vec<u64>> = sections.iter().map(|n| u64::try_from(*n).ok()).collect();
        let Some([t, h, w, last]) = four.and_then(|s| <[u64; 4]>::try_from(s).ok()) else {
            let expected = "must be four counts of pairs".into();
            return Err(ModelError::Config { key, found: format!("{sections:?}"), expected });
        };
        let n_pair = (rope.n_rot / 2) as usize;
        let factors = rope.factors.get_or_insert_with(|| vec![1.0; n_pair]);
        let without = |i: &usize| *i as u64 % (t + h + w + last) >= t + h + w;
        // An infinite divisor of the frequency disables RoPE for a pair.
        (0..n_pair).filter(without).for_each(|i| factors[i] = f32::INFINITY);
    }
    with(b, rope)
}

fn paired(b: &mut Builder<'_>, pairing: RopePairing) -> Result<(), ModelError> {
    let rope = b.rope(pairing)?;
    with(b, rope)
}

fn with(b: &mut Builder<'_>, mut rope: Rope) -> Result<(), ModelError> {
    if let Some(alpha) = b.f32("rope.scaling.alpha")?.filter(|alpha| *alpha > 0.0) {
        let d = f64::from(b.config.d_head);
        // A number of the metadata in files that llama.cpp saved again, without alpha.
        rope.base = f64::from((rope.base * f64::from(alpha).powf(d / (d - 2.0))) as f32);
    }
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm: QkNorm::HeadsLast, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
