//! Ministral 3, Mistral Small 3, Devstral.
//!
//! Llama with its own YaRN parameters, and scores that grow with the position.

use chaski_graph::{Rope, RopePairing, Score, Warmth};

use super::llama::feed_forward;
use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = yarn(b)?;
    let rope = b.add_rope(rope);
    let by = b.f32("attention.temperature_scale")?.unwrap_or(0.0);
    let warmth = (by != 0.0).then_some(Warmth { by, run: b.config.n_ctx_orig.max(1) });
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        let attention = Attention { score: Score { warmth, ..attention.score }, ..attention };
        Ok(Layer { attention, feed_forward: feed_forward(b, i), norms: Norms::BEFORE })
    })
}

/// RoPE: if `yarn_log_multiplier` is given, the magnitude is divided by the one it implies for the scaling.
fn yarn(b: &Builder<'_>) -> Result<Rope, ModelError> {
    let mut rope = b.rope(RopePairing::Norm)?;
    if rope.ext_factor == 0.0 {
        return Ok(rope);
    }
    let number = |key: &str, default: f64| Ok::<_, ModelError>(b.f32(key)?.map_or(default, f64::from));
    rope.beta_fast = number("rope.scaling.yarn_beta_fast", rope.beta_fast)?;
    rope.beta_slow = number("rope.scaling.yarn_beta_slow", rope.beta_slow)?;
    let multiplier = number("rope.scaling.yarn_log_multiplier", 0.0)?;
    if multiplier != 0.0 {
        rope.magnitude /= 1.0 + 0.1 * multiplier * (1.0 / rope.freq_scale).ln().max(0.0);
    }
    Ok(rope)
}
