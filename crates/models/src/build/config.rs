//! The common metadata of a model.

use chaski_graph::{Rope, RopePairing, Routing};
use ggml_format::{Metadata, TensorInfo};

use crate::error::ModelError;

/// The common metadata of a model, without family-specific keys.
#[derive(Clone, Debug)]
pub struct Config {
    /// `general.architecture`, the prefix of all keys.
    pub arch: String,
    /// Context size that the model was trained with, in tokens.
    pub n_ctx_train: u32,
    /// Width of the residual stream.
    pub n_embd: u32,
    /// Number of layers.
    pub n_layer: u32,
    /// Query heads per layer.
    pub n_head: Vec<u32>,
    /// KV heads per layer.
    pub n_head_kv: Vec<u32>,
    /// Width of the feed-forward part per layer.
    pub n_ff: Vec<u32>,
    /// Channels of a key head.
    pub d_head: u32,
    /// Channels of a value head.
    pub d_head_v: u32,
    /// Epsilon of RMS norms.
    pub eps: f32,
    /// Epsilon of layer norms.
    pub eps_layer: f32,
    /// Channels per head with RoPE.
    pub n_rot: u32,
    /// Experts per layer; 0 if there are none.
    pub n_expert: u32,
    /// Experts per token.
    pub n_expert_used: u32,
    /// Size of the vocabulary.
    pub n_vocab: u32,
    /// Context size before RoPE scaling, in tokens.
    pub n_ctx_orig: u32,
}

impl Config {
    /// Reads the metadata of a file with these tensors.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for a missing or mistyped key, [`ModelError::Config`] for invalid sizes.
    pub fn new(m: &Metadata, tensors: &[TensorInfo]) -> Result<Config, ModelError> {
        let arch = m.str("general.architecture")?.to_owned();
        let key = |k: &str| format!("{arch}.{k}");
        let n_block = m.u32(&key("block_count"))?;
        all_within(n_block, tensors, &key("block_count"))?;
        let n_next = m.opt_u32(&key("nextn_predict_layers"))?.unwrap_or(0);
        let wrong = |k: &str, found: u64, expected: &str| ModelError::Config {
            key: key(k),
            found: found.to_string(),
            expected: expected.into(),
        };
        if n_block > 4096 || n_next > n_block {
            return Err(wrong("block_count", n_block.into(), "must be at most 4096"));
        }
        let layers = |k: &str, default: Option<Vec<u32>>| -> Result<Vec<u32>, ModelError> {
            match default {
                Some(d) if !m.contains(&key(k)) => Ok(d),
                _ => Ok(m.per_layer::<u32>(&key(k), n_block as usize)?),
            }
        };
        let n_embd = m.u32(&key("embedding_length"))?;
        let n_head = layers("attention.head_count", None)?;
        let n_head_kv = layers("attention.head_count_kv", Some(n_head.clone()))?;
        let n_ff = layers("feed_forward_length", Some(vec![0; n_block as usize]))?;
        // Layers without attention have no heads.
        let first = n_head.iter().copied().find(|n| *n > 0).unwrap_or(0);
        let even = n_embd.checked_div(first).unwrap_or(0);
        let d_head = m.opt_u32(&key("attention.key_length"))?.unwrap_or(even);
        let d_head_v = m.opt_u32(&key("attention.value_length"))?.unwrap_or(even);
        let n_rot = m.opt_u32(&key("rope.dimension_count"))?.unwrap_or(d_head);
        // Models without attention need not give the size of a head.
        let least = u32::from(first > 0);
        for (k, v, limit, least) in [
            ("embedding_length", n_embd, 1 << 20, 1),
            ("attention.key_length", d_head, 1 << 14, least),
            ("attention.value_length", d_head_v, 1 << 14, least),
        ] {
            if v < least || v > limit {
                return Err(wrong(k, v.into(), &format!("must be {least} to {limit}")));
            }
        }
        if n_rot > d_head || n_rot % 2 != 0 {
            return Err(wrong(
                "rope.dimension_count",
                n_rot.into(),
                "must be even and at most the head's channels",
            ));
        }
        // Bounds sizes whose products are computed in 32 bits.
        for (k, sizes, limit) in [
            ("attention.head_count", &n_head, 1 << 12),
            ("attention.head_count_kv", &n_head_kv, 1 << 12),
            ("feed_forward_length", &n_ff, 1 << 22),
        ] {
            if let Some(n) = sizes.iter().find(|n| **n > limit) {
                return Err(wrong(k, (*n).into(), &format!("must be at most {limit}")));
            }
        }
        for (q, kv) in n_head.iter().zip(&n_head_kv) {
            if *kv != 0 && q % kv != 0 {
                return Err(wrong("attention.head_count_kv", (*kv).into(), "must divide the query heads"));
            }
        }
        let n_expert = m.opt_u32(&key("expert_count"))?.unwrap_or(0);
        let n_expert_used = m.opt_u32(&key("expert_used_count"))?.unwrap_or(0);
        if n_expert > Routing::MAX_EXPERT {
            let expected = format!("must be at most {}", Routing::MAX_EXPERT);
            return Err(wrong("expert_count", n_expert.into(), &expected));
        }
        if n_expert_used > n_expert || (n_expert > 0 && n_expert_used == 0) {
            let expected = format!("must be 1 to the {n_expert} that there are");
            return Err(wrong("expert_used_count", n_expert_used.into(), &expected));
        }
        let n_ctx_train = m.u32(&key("context_length"))?;
        let n_token = m.array("tokenizer.ggml.tokens").map(|a| a.len() as u32).ok();
        let n_vocab = match m.opt_u32(&key("vocab_size"))?.or(n_token) {
            Some(n) => n,
            None => m.u32(&key("vocab_size"))?,
        };
        Ok(Config {
            n_ctx_train,
            n_embd,
            n_layer: n_block - n_next,
            n_head,
            n_head_kv,
            n_ff,
            d_head,
            d_head_v,
            eps: finite(m, &key("attention.layer_norm_rms_epsilon"), 1e-5, 0.0)?,
            eps_layer: finite(m, &key("attention.layer_norm_epsilon"), 1e-5, 0.0)?,
            n_rot,
            n_expert,
            n_expert_used,
            n_vocab,
            n_ctx_orig: m.opt_u32(&key("rope.scaling.original_context_length"))?.unwrap_or(n_ctx_train),
            arch,
        })
    }

    /// RoPE parameters with the scaling in the metadata.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for mistyped keys, [`ModelError::Unsupported`] for an unknown scaling.
    pub fn rope(
        &self,
        m: &Metadata,
        pairing: RopePairing,
        factors: Option<Vec<f32>>,
    ) -> Result<Rope, ModelError> {
        let key = |k: &str| format!("{}.rope.{k}", self.arch);
        let base = finite(m, &key("freq_base"), 10_000.0, f32::MIN_POSITIVE)?;
        let kind = m.opt_str(&key("scaling.type"))?.unwrap_or("linear");
        let linear = finite(m, &key("scale_linear"), 0.0, 0.0)?;
        let factor = finite(m, &key("scaling.factor"), linear, 0.0)?;
        let factor = if factor == 0.0 { 1.0 } else { f64::from(factor) };
        let attn_factor = f64::from(finite(m, &key("scaling.attn_factor"), 1.0, f32::MIN)?);
        let plain = Rope {
            n_ctx_orig: self.n_ctx_orig,
            magnitude: attn_factor,
            factors,
            ..Rope::plain(self.n_rot, pairing, f64::from(base))
        };
        Ok(match kind {
            "none" => plain,
            "linear" | "longrope" => {
                let freq_scale = if kind == "linear" { 1.0 / factor } else { 1.0 };
                Rope { freq_scale, ..plain }
            }
            "yarn" => Rope {
                freq_scale: 1.0 / factor,
                ext_factor: 1.0,
                magnitude: attn_factor * if factor <= 1.0 { 1.0 } else { 1.0 + 0.1 * factor.ln() },
                ..plain
            },
            other => return Err(ModelError::Unsupported { what: format!("rope scaling `{other}`") }),
        })
    }
}

/// Rejects tensors of layers beyond the count in `key`, which would be ignored. The count includes MTP layers.
fn all_within(n_block: u32, tensors: &[TensorInfo], key: &str) -> Result<(), ModelError> {
    let layer = |t: &TensorInfo| t.name.strip_prefix("blk.")?.split('.').next()?.parse::<u32>().ok();
    let last = tensors.iter().filter_map(|t| Some((layer(t)?, &t.name))).max_by_key(|(layer, _)| *layer);
    match last {
        Some((layer, name)) if layer >= n_block => Err(ModelError::Config {
            key: key.into(),
            found: n_block.to_string(),
            expected: format!("the file has tensors up to layer {layer}, counted from 0: `{name}`"),
        }),
        _ => Ok(()),
    }
}

/// A finite number of at least `least`; `default` if the file has none.
fn finite(m: &Metadata, key: &str, default: f32, least: f32) -> Result<f32, ModelError> {
    let v = m.opt_f32(key)?.unwrap_or(default);
    if v.is_finite() && v >= least {
        return Ok(v);
    }
    let expected = match least {
        f32::MIN => "must be finite",
        0.0 => "must be finite and at least 0",
        _ => "must be finite and more than 0",
    };
    Err(ModelError::Config { key: key.into(), found: v.to_string(), expected: expected.into() })
}
