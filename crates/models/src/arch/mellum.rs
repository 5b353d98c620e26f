//! Mellum 2, and Maple.
//!
//! Qwen 3 MoE with windows in some layers. In Mellum these have unscaled RoPE; in Maple only these have RoPE, and the
//! gates of experts are clamped.

use chaski_graph::{Act, Rope, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, QkNorm, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    let near = Rope::plain(all.n_rot, RopePairing::Neox, all.base);
    let (all, near) = (b.add_rope(all), b.add_rope(near));
    let windows = b.windows(0, 4)?;
    layers(b, &windows, |i| Some(if windows[i] > 0 { near } else { all }), |_| Act::Swiglu)
}

/// Maple.
pub(super) fn build_maple(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let base = b.f32("rope.freq_base_swa")?.map_or(rope.base, f64::from);
    let rope = b.add_rope(Rope { base, ..rope });
    let windows = b.windows(0, 4)?;
    let key = format!("{}.swiglu_clamp_exp", b.config.arch);
    let limits = b.metadata.per_layer::<f32>(&key, windows.len())?;
    let act = |i: usize| if limits[i] > 1e-6 { Act::SwigluClamp { limit: limits[i] } } else { Act::Swiglu };
    layers(b, &windows, |i| (windows[i] > 0).then_some(rope), act)
}

fn layers(
    b: &mut Builder<'_>,
    windows: &[u32],
    rope: impl Fn(usize) -> Option<usize>,
    act: impl Fn(usize) -> Act,
) -> Result<(), ModelError> {
    let n_ff = b.u32("expert_feed_forward_length")?.filter(|n| *n > 0);
    decoder(b, &Decoder::RMS, |b, i| {
        let c = b.config;
        let attention = Attention::new(b, i, rope(i))?;
        let score = Score { window: windows[i], ..attention.score };
        let attention = Attention { score, norm: QkNorm::Heads, ..attention };
        let n_ff = n_ff.unwrap_or(c.n_ff[i] / c.n_expert_used.max(1));
        let experts = Experts { act: act(i), ..Experts::new(b, n_ff) };
        Ok(Layer { attention, feed_forward: FeedForward::Experts(experts), norms: Norms::BEFORE })
    })
}
