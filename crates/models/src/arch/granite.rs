//! Granite 3 and the Granite 4 models without recurrent layers, dense and with experts, and those with windows.
//!
//! Llama with factors on embeddings, scores, layer outputs, and logits. Models with windows have attention sinks, and
//! layers without RoPE.

use chaski_graph::{Act, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Experts, FeedForward, Layer, Norms, Shared, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    // Absent or 0 means 1.
    let factor = |key: &str| Ok::<_, ModelError>(b.f32(key)?.filter(|v| *v != 0.0));
    let d = Decoder {
        embed_scale: factor("embedding_scale")?.unwrap_or(1.0),
        residual_scale: factor("residual_scale")?.unwrap_or(1.0),
        logit_scale: 1.0 / factor("logit_scale")?.unwrap_or(1.0),
        ..Decoder::RMS
    };
    let scale = factor("attention.scale")?;
    // This key turns RoPE off, but in one architecture: where others ignore it, llama.cpp writes false into every file.
    let is_off = b.config.arch == "granite" && b.bool("rope.scaling.finetuned")? == Some(false);
    let shared = b.u32("expert_shared_feed_forward_length")?.filter(|n| *n > 0);
    let rope = if is_off { None } else { Some(b.rope(RopePairing::Norm)?) };
    let rope = rope.map(|r| b.add_rope(r));
    let windows = b.windows(0, 0)?;
    let rotates = b.flags("attention.rope_pattern")?;
    let joined = shared.is_some() && b.config.arch == "granite_swa";
    if joined {
        let what = "`granite_swa.expert_shared_feed_forward_length`: an expert for all tokens".into();
        return Err(ModelError::Unsupported { what });
    }
    decoder(b, &d, |b, i| {
        let attention = Attention::new(b, i, rope.filter(|_| rotates.as_ref().is_none_or(|r| r[i])))?;
        let score = scale.map_or(attention.score, Score::scaled);
        let sinks = b.has(&format!("blk.{i}.attn_sinks.weight"));
        let score = Score { window: windows[i], sinks, ..score };
        let feed_forward = if b.config.n_expert > 0 {
            let shared = shared.map_or(Shared::None, Shared::Plain);
            FeedForward::Experts(Experts { shared, ..Experts::new(b, b.config.n_ff[i]) })
        } else {
            FeedForward::Gated(Act::Swiglu)
        };
        Ok(Layer { attention: Attention { score, ..attention }, feed_forward, norms: Norms::BEFORE })
    })
}
