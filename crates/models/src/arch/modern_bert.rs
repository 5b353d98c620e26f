//! ModernBERT, and Granite Embedding R2.
//!
//! Attention in both directions, windows but in every third layer, RoPE, layer norms without biases before each part,
//! gated feed-forward parts.

use chaski_graph::{Act, Rope, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, FeedForward, Layer, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let all = b.rope(RopePairing::Neox)?;
    let base = b.f32("rope.freq_base_swa")?.map_or(all.base, f64::from);
    let near = Rope { base, ..all.clone() };
    let (all, near) = (b.add_rope(all), b.add_rope(near));
    let windows = b.windows_after_first(0, 3)?;
    let key = format!("{}.hidden_activation", b.config.arch);
    let act = match b.metadata.opt_str(&key)? {
        None | Some("gelu" | "geglu") => Act::Geglu,
        Some("silu" | "swish" | "swiglu") => Act::Swiglu,
        Some(other) => return Err(b.wrong("hidden_activation", other, "must be gelu or silu")),
    };
    let d = Decoder { embed_norm: true, encodes: Some("output_norm"), ..Decoder::LAYER };
    decoder(b, &d, |b, i| {
        let rope = if windows[i] > 0 { near } else { all };
        let attention = Attention::new(b, i, Some(rope))?;
        let score = Score { window: windows[i], ..attention.score };
        let attention = Attention { score, both_ways: true, ..attention };
        // The norm of the embeddings stands for that of the first layer.
        let has_norm = b.has(&format!("blk.{i}.attn_norm.weight"));
        let norms = match has_norm {
            false if i == 0 => Norms { attention: None, ..Norms::BEFORE },
            _ => Norms::BEFORE,
        };
        Ok(Layer { attention, feed_forward: FeedForward::Joined(act), norms })
    })
}
