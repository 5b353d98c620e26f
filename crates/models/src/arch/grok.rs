//! Grok 1 and 2.
//!
//! Norms around both parts, softcapped scores and logits, MoE with GELU gates; in Grok 2 with a dense part in parallel.

use chaski_graph::{Act, RopePairing, Routing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, Shared, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let mut rope = b.rope(RopePairing::Neox)?;
    rope.beta_fast = b.f32("rope.scaling.yarn_beta_fast")?.map_or(8.0, f64::from);
    rope.beta_slow = b.f32("rope.scaling.yarn_beta_slow")?.map_or(rope.beta_slow, f64::from);
    if let Some(by) = b.f32("rope.scaling.yarn_attn_factor")?.filter(|by| *by != 1.0) {
        return Err(b.wrong("rope.scaling.yarn_attn_factor", by, "must be 1"));
    }
    let rope = b.add_rope(rope);
    let d = Decoder {
        embed_scale: b.f32("embedding_scale")?.unwrap_or(78.383_67),
        logit_scale: b.f32("logit_scale")?.unwrap_or(0.577_350_26),
        logit_softcap: b.f32("final_logit_softcapping")?.unwrap_or(0.0),
        ..Decoder::RMS
    };
    let scale = b.f32("attention.output_scale")?.unwrap_or(0.088_388_346);
    let softcap = b.f32("attn_logit_softcapping")?.unwrap_or(30.0);
    let n_ff = b.u32("expert_feed_forward_length")?.filter(|n| *n > 0);
    decoder(b, &d, |b, i| {
        let c = b.config;
        let block = format!("blk.{i}");
        let attention = Attention::new(b, i, Some(rope))?;
        let attention = Attention { score: Score { softcap, ..Score::scaled(scale) }, ..attention };
        let experts = Experts { act: Act::Geglu, ..Experts::new(b, n_ff.unwrap_or(c.n_ff[i])) };
        let half = 0.5f32.sqrt();
        let experts = match b.has(&format!("{block}.ffn_up.weight")) {
            false => experts,
            true => Experts {
                shared: Shared::Dense(c.n_ff[i]),
                shared_scale: half,
                routing: Routing { scale: half, ..experts.routing },
                ..experts
            },
        };
        let last = ["post_ffw_norm", "layer_output_norm"];
        let norms = Norms {
            after_attention: Some("attn_output_norm"),
            after_feed_forward: Some(last[usize::from(b.has(&format!("{block}.layer_output_norm.weight")))]),
            ..Norms::BEFORE
        };
        Ok(Layer { attention, feed_forward: FeedForward::Experts(experts), norms })
    })
}
