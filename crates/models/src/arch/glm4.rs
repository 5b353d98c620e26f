//! GLM 4 of 2025, and ChatGLM 3 and GLM 4 before it.
//!
//! Norms around both parts, in the older models before them; RoPE of adjacent channels, gate and up in one matrix.

use chaski_graph::{Act, Rope, RopePairing, Sections};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = rope_of(b)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::Joined(Act::Swiglu), norms: Norms::AROUND })
    })
}

/// The older models.
pub(super) fn build_chat(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: FeedForward::Joined(Act::Swiglu), norms: Norms::BEFORE })
    })
}

/// RoPE: vision models have sections of pairs with their own position components, and NeoX pairing. In a text the
/// components are equal, unless a pair belongs to the fourth section.
pub(super) fn rope_of(b: &Builder<'_>) -> Result<Rope, ModelError> {
    let key = format!("{}.rope.dimension_sections", b.config.arch);
    let Some(sections) = b.metadata.opt_vec::<i32>(&key)? else { return b.rope(RopePairing::Norm) };
    if sections.len() < 3 || sections[..2].iter().any(|n| *n <= 0) {
        return b.rope(RopePairing::Norm);
    }
    let n_pair: i64 = sections[..3].iter().map(|n| i64::from(*n)).sum();
    if n_pair < i64::from(b.config.n_rot / 2) {
        let expected = format!("must have at least {} pairs in the first three", b.config.n_rot / 2);
        return Err(ModelError::Config { key, found: format!("{sections:?}"), expected });
    }
    // More than there are pairs has no effect.
    let count = |n: &i32| u32::try_from(*n).unwrap_or(0).min(b.config.n_rot);
    let pairs = [0, 1, 2, 3].map(|i| sections.get(i).map_or(0, count));
    let sections = Some(Sections { pairs, take_turns: false });
    Ok(Rope { sections, ..b.rope(RopePairing::Neox)? })
}
