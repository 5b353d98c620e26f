//! MiniCPM 1 and 2, and MiniCPM 3 with latent attention.
//!
//! Llama with factors on embeddings, layer outputs, and logits; MiniCPM 3 has latent attention.

use chaski_graph::{Act, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{
    Attention, Decoder, Experts, FeedForward, LatentAttention, LatentSizes, Layer, Norms, decoder,
};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let factor = |key: &str| Ok::<_, ModelError>(b.f32(key)?.filter(|v| *v != 0.0));
    let own = of_sizes(b);
    let d = Decoder {
        embed_scale: factor("embedding_scale")?.unwrap_or(own.embed_scale),
        residual_scale: factor("residual_scale")?.unwrap_or(own.residual_scale),
        logit_scale: factor("logit_scale")?.map_or(own.logit_scale, |v| 1.0 / v),
        ..own
    };
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    decoder(b, &d, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        let feed_forward = match b.config.n_expert {
            0 => FeedForward::Gated(Act::Swiglu),
            _ => FeedForward::Experts(Experts::new(b, b.config.n_ff[i])),
        };
        Ok(Layer { attention, feed_forward, norms: Norms::BEFORE })
    })
}

pub(super) fn build_latent(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let sizes = LatentSizes::new(b.metadata, b.config)?;
    let q_rank = b.u32("attention.q_lora_rank")?.filter(|n| (1..=1 << 16).contains(n));
    let q_rank = Some(q_rank.ok_or_else(|| b.wrong("attention.q_lora_rank", "none", "must be 1 to 65536"))?);
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let score = Score::scaled(1.0 / ((sizes.plain + sizes.n_rot) as f32).sqrt());
    decoder(b, &of_sizes(b), |_, _| {
        let attention = LatentAttention { sizes, q_rank, rope, score };
        Ok(Layer { attention, feed_forward: FeedForward::Gated(Act::Swiglu), norms: Norms::BEFORE })
    })
}

/// Default factors, for files that have none.
fn of_sizes(b: &Builder<'_>) -> Decoder {
    let c = b.config;
    Decoder {
        embed_scale: 12.0,
        residual_scale: 1.4 / (c.n_layer as f32).sqrt(),
        logit_scale: 256.0 / c.n_embd as f32,
        ..Decoder::RMS
    }
}
