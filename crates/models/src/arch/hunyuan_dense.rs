//! Hunyuan without experts, and Maincoder; Hunyuan OCR without its eye.
//!
//! Llama with rotation of halves and norms of the heads of q and k after it.

use chaski_graph::{Act, Rope, RopePairing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    paired(b, RopePairing::Neox)
}

/// Maincoder rotates neighbouring channels.
pub(super) fn build_maincoder(b: &mut Builder<'_>) -> Result<(), ModelError> {
    paired(b, RopePairing::Norm)
}

/// Models that also see pictures: their pairs of channels rotate by positions of four kinds, of which a text has the first
/// three alike and the fourth at 0.
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
        // What divides the frequencies: these pairs do not turn.
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
        rope.base *= f64::from(alpha).powf(d / (d - 2.0));
    }
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention { norm: QkNorm::HeadsLast, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}
