//! Rules and checks that families share.

use ggml_format::OwnedValue;
use serde_json::Value;

use crate::hf::config::{Config, ConfigError};
use crate::hf::keys::*;
use crate::hf::part::{plus_one, rope_k, rope_q, same};
use crate::hf::rules::{Rule, module};
use crate::recipe::Recipe;
use crate::virtual_gguf::{VirtualError, VirtualTensor};

/// Norms before attention and before the feed-forward part.
pub(super) const NORMS_BEFORE: &[Rule] =
    &[module("attn_norm", "input_layernorm", same), module("ffn_norm", "post_attention_layernorm", same)];

/// One norm for both parts, which run in parallel.
pub(super) const NORM_SHARED: &[Rule] = &[module("attn_norm", "input_layernorm", same)];

/// Norms behind both parts.
pub(super) const NORMS_AFTER: &[Rule] = &[
    module("post_attention_norm", "post_attention_layernorm", same),
    module("post_ffw_norm", "post_feedforward_layernorm", same),
];

/// Embeddings, a last norm that is stored without its 1, and the output matrix.
pub(super) const TOP_PLUS_ONE: &[Rule] = &[
    module("token_embd", "model.embed_tokens", same),
    module("output_norm", "model.norm", plus_one),
    module("output", "lm_head", same).head(),
];

/// Embeddings, the last norm and the output matrix of both versions of Mamba.
pub(super) const MAMBA_TOP: &[Rule] = &[
    module("token_embd", "backbone.embeddings", same),
    module("output_norm", "backbone.norm_f", same),
    module("output", "lm_head", same).head(),
];

/// Attention whose RoPE turns neighbours, as ggml's Llama.
pub(super) const ATTENTION_PAIRS: &[Rule] = &[
    module("attn_q", "self_attn.q_proj", rope_q),
    module("attn_k", "self_attn.k_proj", rope_k),
    module("attn_v", "self_attn.v_proj", same),
    module("attn_output", "self_attn.o_proj", same),
];

/// Attention as it is.
pub(super) const ATTENTION: &[Rule] = &[
    module("attn_q", "self_attn.q_proj", same),
    module("attn_k", "self_attn.k_proj", same),
    module("attn_v", "self_attn.v_proj", same),
    module("attn_output", "self_attn.o_proj", same),
];

/// Norms of the heads of q and k.
pub(super) const QK_NORMS: &[Rule] =
    &[module("attn_q_norm", "self_attn.q_norm", same), module("attn_k_norm", "self_attn.k_norm", same)];

/// A gated feed-forward part.
pub(super) const MLP: &[Rule] = &[
    module("ffn_gate", "mlp.gate_proj", same),
    module("ffn_up", "mlp.up_proj", same),
    module("ffn_down", "mlp.down_proj", same),
];

/// Experts with a router.
pub(super) const EXPERT_MLPS: &[Rule] = &[
    module("ffn_gate_inp", "mlp.gate", same),
    module("ffn_gate_exps", "mlp.experts.{e}.gate_proj", same),
    module("ffn_up_exps", "mlp.experts.{e}.up_proj", same),
    module("ffn_down_exps", "mlp.experts.{e}.down_proj", same),
];

/// The expert of all tokens.
pub(super) const SHARED_EXPERT: &[Rule] = &[
    module("ffn_gate_inp_shexp", "mlp.shared_expert_gate", same),
    module("ffn_gate_shexp", "mlp.shared_expert.gate_proj", same),
    module("ffn_up_shexp", "mlp.shared_expert.up_proj", same),
    module("ffn_down_shexp", "mlp.shared_expert.down_proj", same),
];

/// Channels within experts, and within the expert of all tokens.
pub(super) const EXPERT_SIZES: &[Key] = &[
    key("expert_feed_forward_length", u32_of!("moe_intermediate_size")),
    key("expert_shared_feed_forward_length", u32_of!("shared_expert_intermediate_size")),
];

/// The activation must be one of these.
pub(super) fn activation(c: &Config, names: &[&str]) -> Result<(), ConfigError> {
    let found = c.str(&["hidden_activation", "hidden_act"])?;
    c.refuse_unless(found.is_none_or(|found| names.contains(&found)), || format!("activation {found:?}"))
}

/// SiLU, no window, and none of the RoPE scalings that change the magnitude of scores.
pub(super) fn plain(c: &Config) -> Result<(), ConfigError> {
    activation(c, &["silu", "swish"])?;
    let is_long = matches!(rope_type(c), Some("longrope" | "su"));
    c.refuse_unless(!is_long, || "RoPE scaling of type \"longrope\" in other classes than Phi 3".into())?;
    no_window(c)
}

/// No window of attention, or one that is switched off or has no tokens.
pub(super) fn no_window(c: &Config) -> Result<(), ConfigError> {
    let is_off = c.bool("use_sliding_window")? == Some(false);
    let window = c.u32(&["sliding_window"])?.filter(|&n| n > 0);
    c.refuse_unless(is_off || window.is_none(), || format!("sliding_window {window:?}"))
}

/// The last of every `period` layers, and no other, has no window.
pub(super) fn window_pattern(c: &Config, period: u32) -> Result<(), ConfigError> {
    let kinds = c.layer_types()?;
    let fits = |(i, kind): (u32, &&str)| (*kind == "full_attention") == ((i + 1) % period == 0);
    let stated = c.u32(&["sliding_window_pattern", "_sliding_window_pattern"])?.unwrap_or(period);
    let holds = match kinds {
        Some(kinds) => (0..).zip(&kinds).all(fits),
        None => stated == period,
    };
    c.refuse_unless(holds, || format!("windows in other layers than all but every {period}th"))
}

/// Every layer has experts.
pub(super) fn experts_everywhere(c: &Config) -> Result<(), ConfigError> {
    let dense = c.list("mlp_only_layers")?.unwrap_or_default().len();
    let step = c.u32(&["decoder_sparse_step"])?.unwrap_or(1);
    c.refuse_unless(dense == 0 && step == 1, || "layers without experts between those with them".into())
}

/// An array of whole numbers, as a key has it.
pub(super) fn i32s(values: impl Iterator<Item = u32>) -> OwnedValue {
    OwnedValue::from(values.map(|n| n as i32).collect::<Vec<_>>())
}

/// Tensors that no file has: factors of RoPE's frequencies.
pub(in crate::hf) fn rope_tensors(c: &Config) -> Result<Vec<VirtualTensor>, RopeError> {
    let tensor = |name: &str, values: Vec<f32>| {
        let n = values.len() as u64;
        let recipe = Recipe::numbers(values, n)
            .map_err(|source| VirtualError::Recipe { tensor: name.into(), source })?;
        Ok(VirtualTensor::new(name, &[], recipe)?)
    };
    match rope_type(c) {
        Some("llama3") => Ok(vec![tensor("rope_freqs.weight", llama3_factors(c)?)?]),
        Some("longrope" | "su") => ["long", "short"]
            .iter()
            .map(|kind| tensor(&format!("rope_factors_{kind}.weight"), long_factors(c, kind)?))
            .collect(),
        _ => Ok(Vec::new()),
    }
}

/// Factors of RoPE that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RopeError {
    /// A number is missing.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There are none.
    #[error(transparent)]
    Tensor(#[from] VirtualError),
}

/// A number of RoPE's scaling.
fn rope_number(c: &Config, name: &str) -> Result<f64, ConfigError> {
    let missing =
        || ConfigError::Missing { key: format!("rope_scaling.{name}"), expected: "a number".into() };
    c.rope(&[name]).and_then(Value::as_f64).ok_or_else(missing)
}

/// Divisors of the frequencies, one per pair: 1 for short waves, the factor for long ones, and between them a mixture.
fn llama3_factors(c: &Config) -> Result<Vec<f32>, ConfigError> {
    let (dim, base) = (c.head_dim()?, rope_number(c, "rope_theta")?);
    let (low, high) = (rope_number(c, "low_freq_factor")?, rope_number(c, "high_freq_factor")?);
    let (factor, trained) = (rope_number(c, "factor")?, rope_number(c, "original_max_position_embeddings")?);
    let [base, low, high, factor, trained] = [base, low, high, factor, trained].map(|x| x as f32);
    // In f32, as the original.
    let of = |i: u32| {
        let frequency = 1.0 / base.powf(i as f32 / dim as f32);
        let wave = 2.0 * std::f32::consts::PI / frequency;
        if wave < trained / high {
            return 1.0;
        }
        if wave > trained / low {
            return factor;
        }
        let smooth = (trained / wave - low) / (high - low);
        1.0 / ((1.0 - smooth) / factor + smooth)
    };
    Ok((0..dim).step_by(2).map(of).collect())
}

/// The list of factors of longrope.
fn long_factors(c: &Config, kind: &str) -> Result<Vec<f32>, ConfigError> {
    let name = format!("{kind}_factor");
    let missing = || ConfigError::Missing { key: format!("rope_scaling.{name}"), expected: "numbers".into() };
    let list = c.rope(&[&name]).and_then(Value::as_array).ok_or_else(missing)?;
    list.iter().map(|v| v.as_f64().map(|x| x as f32).ok_or_else(missing)).collect()
}
