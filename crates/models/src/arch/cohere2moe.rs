//! Command A with experts.
//!
//! One norm before attention and feed-forward part, which run in parallel. Windows in all but the first of four layers;
//! only these and dense layers have RoPE. The outputs of routed and shared experts are halved.

use chaski_graph::{Gate, RopePairing, Routing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Moe, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    let windows = b.windows_after_first(4096, 4)?;
    let m = Moe::new(b, Gate::Sigmoid)?;
    let n_shared = m.n_shared.unwrap_or(0);
    let m = Moe { shared_ff: m.shared_ff.filter(|_| n_shared > 0), ..m };
    let logit_scale = b.f32("logit_scale")?.filter(|v| *v != 0.0).unwrap_or(1.0);
    let rms = b.f32("attention.layer_norm_rms_epsilon")?.is_some_and(|eps| eps != 0.0);
    let norm = if rms { Decoder::RMS } else { Decoder::LAYER };
    decoder(b, &Decoder { logit_scale, ..norm }, |b, i| {
        let rotates = windows[i] > 0 || i < m.n_dense as usize;
        let attention = Attention::new(b, i, rotates.then_some(rope))?;
        let attention = Attention { score: Score { window: windows[i], ..attention.score }, ..attention };
        let feed_forward = match m.layer(b, i)? {
            FeedForward::Experts(e) if n_shared > 0 => {
                let routing = Routing { scale: 0.5 * e.routing.scale, ..e.routing };
                FeedForward::Experts(Experts { routing, shared_scale: 0.5, ..e })
            }
            other => other,
        };
        Ok(Layer { attention, feed_forward, norms: Norms::ONE })
    })
}
