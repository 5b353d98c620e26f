//! Llama 4.
//!
//! Three of four layers have RoPE of adjacent channels, in Scout followed by unweighted norms of heads, and attend
//! within chunks of 8192 tokens; the fourth attends to all. Every few layers are MoE with a shared expert, where
//! routing weights multiply the experts' inputs.

use chaski_graph::{Gate, RopePairing, Routing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Moe, Norms, QkNorm, decoder};

/// Tokens per chunk. Within the first, no layer is restricted, and no score is scaled up.
const STRETCH: u32 = 8192;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    if b.u32("attention.sliding_window")? == Some(0) {
        let what = "`llama4.attention.sliding_window` of 0: small models of this family".into();
        return Err(ModelError::Unsupported { what });
    }
    if b.config.n_expert_used != 1 {
        return Err(b.wrong("expert_used_count", b.config.n_expert_used, "must be 1 in this family"));
    }
    b.limit_context(STRETCH - 1)?;
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    let m = Moe::new(b, Gate::Sigmoid)?;
    let routing = Routing { gate: Gate::Sigmoid, norm: None, ..m.routing };
    let step = b.u32("interleave_moe_layer_step")?.unwrap_or(1);
    let m = Moe { n_dense: 0, n_shared: Some(1), shared_ff: None, routing, step, ..m };
    // Maverick has no norms.
    let norm = if b.config.n_expert == 128 { QkNorm::None } else { QkNorm::HeadsLastPlain };
    decoder(b, &Decoder::RMS, |b, i| {
        let rotates = (i + 1) % 4 != 0;
        let attention = Attention::new(b, i, rotates.then_some(rope))?;
        let attention = Attention { norm: if rotates { norm } else { QkNorm::None }, ..attention };
        let feed_forward = match m.layer(b, i)? {
            FeedForward::Experts(e) => FeedForward::Experts(Experts { weighs_inputs: true, ..e }),
            dense => dense,
        };
        Ok(Layer { attention, feed_forward, norms: Norms::BEFORE })
    })
}
