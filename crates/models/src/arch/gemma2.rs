//! Gemma 2.
//!
//! Gemma with norms around both parts, softcapped scores and logits, and windows in every second layer.

use chaski_graph::{Act, RopePairing, Score};

use super::gemma::{decoder_of, score_scale};
use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let cap = |key: &str, default: f32| Ok::<_, ModelError>(b.f32(key)?.unwrap_or(default));
    let softcap = cap("attn_logit_softcapping", 50.0)?;
    let d = Decoder { logit_softcap: cap("final_logit_softcapping", 30.0)?, ..decoder_of(b) };
    let windows = b.windows(4096, 2)?;
    decoder(b, &d, |b, i| {
        let score = Score { softcap, window: windows[i], ..Score::scaled(score_scale(b, 46)) };
        let attention = Attention { score, ..Attention::new(b, i, Some(rope))? };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Geglu), norms: Norms::AROUND })
    })
}
