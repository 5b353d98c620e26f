//! Keys of a GGUF file and how config.json gives their values.

use ggml_format::OwnedValue;
use serde_json::Value;

use super::config::{Config, ConfigError, Found, ROTARY_PART, real, whole};

/// A key.
#[derive(Clone, Copy)]
pub struct Key {
    /// Its name without the family's, such as `attention.head_count`.
    pub name: &'static str,
    /// Its value; none if the configuration has none.
    pub value: fn(&Config) -> Found,
}

pub(super) const fn key(name: &'static str, value: fn(&Config) -> Found) -> Key {
    Key { name, value }
}

fn int(value: Option<u32>) -> Found {
    Ok(value.map(OwnedValue::U32))
}

fn float(value: Option<f32>) -> Found {
    Ok(value.map(OwnedValue::F32))
}

/// A whole number by its names.
macro_rules! u32_of {
    ($($name:literal),+) => { |c| Ok(c.u32(&[$($name),+])?.map(ggml_format::OwnedValue::U32)) };
}
/// A number by its names.
macro_rules! f32_of {
    ($($name:literal),+) => { |c| Ok(c.f32(&[$($name),+])?.map(ggml_format::OwnedValue::F32)) };
}
pub(super) use {f32_of, u32_of};

/// Sizes that nearly all families have.
pub(super) const SIZES: &[Key] = &[
    key("block_count", |c| int(Some(c.n_layer()?))),
    key("context_length", u32_of!("max_position_embeddings", "n_ctx", "n_positions", "max_sequence_length")),
    key("embedding_length", |c| int(Some(c.n_embd()?))),
    key("feed_forward_length", u32_of!("intermediate_size", "n_inner", "hidden_dim")),
    key("attention.head_count", |c| int(Some(c.n_head()?))),
];

/// KV heads, the same in all layers.
pub(super) const KV_HEADS: &[Key] =
    &[key("attention.head_count_kv", u32_of!("num_key_value_heads", "n_kv_heads"))];

/// Norms.
pub(super) const NORMS: &[Key] = &[
    key("attention.layer_norm_rms_epsilon", f32_of!("rms_norm_eps", "norm_eps")),
    key("attention.layer_norm_epsilon", f32_of!("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")),
];

/// Channels of a head, where the configuration names them.
pub(super) const HEAD_DIM: &[Key] =
    &[key("attention.key_length", u32_of!("head_dim")), key("attention.value_length", u32_of!("head_dim"))];

/// RoPE and its scaling.
pub(super) const ROPE: &[Key] = &[
    key("rope.freq_base", |c| float(c.rope_f32(&["rope_theta", "rotary_emb_base"])?)),
    key("rope.scaling.type", |c| Ok(scaling(c)?.map(OwnedValue::from))),
    key("rope.scaling.factor", |c| match scaling(c)? {
        Some(_) => float(c.rope_f32(&["factor"])?),
        None => Ok(None),
    }),
    key("rope.scaling.original_context_length", |c| match scaling(c)? {
        Some("yarn") => rope_u32(c, &["original_max_position_embeddings"]),
        _ => Ok(None),
    }),
    key("rope.scaling.yarn_ext_factor", |c| yarn_f32(c, &["extrapolation_factor"])),
    key("rope.scaling.yarn_attn_factor", |c| yarn_f32(c, &["attention_factor", "attn_factor"])),
    key("rope.scaling.yarn_beta_fast", |c| yarn_f32(c, &["beta_fast"])),
    key("rope.scaling.yarn_beta_slow", |c| yarn_f32(c, &["beta_slow"])),
];

/// Experts.
pub(super) const EXPERTS: &[Key] = &[
    key("expert_count", |c| int(c.n_expert()?)),
    key("expert_used_count", u32_of!("num_experts_per_tok", "num_experts_per_token")),
];

/// A window of attention.
pub(super) const WINDOW: &[Key] = &[key("attention.sliding_window", u32_of!("sliding_window"))];

/// The size of the vocabulary.
pub(super) const VOCABULARY: &[Key] = &[key("vocab_size", u32_of!("vocab_size"))];

/// Channels of a head that turn: all of them.
pub(super) const ROPE_WHOLE: &[Key] = &[key("rope.dimension_count", |c| int(Some(c.head_dim()?)))];

/// Channels of a head that turn: a part of them.
pub(super) const ROPE_PART: &[Key] = &[key("rope.dimension_count", |c| {
    let part = c.rope_f32(ROTARY_PART)?;
    int(part.map(|part| Ok((f64::from(c.head_dim()?) * f64::from(part)) as u32)).transpose()?)
})];

/// The same where the family's default is a quarter.
pub(super) const ROPE_QUARTER: &[Key] = &[key("rope.dimension_count", |c| {
    let part = c.rope_f32(ROTARY_PART)?;
    int(Some((f64::from(c.head_dim()?) * f64::from(part.unwrap_or(0.25))) as u32))
})];

fn rope_u32(c: &Config, names: &[&str]) -> Found {
    int(c.rope(names).map(|v| whole(names[0], v)).transpose()?)
}

fn yarn_f32(c: &Config, names: &[&str]) -> Found {
    match scaling(c)? {
        Some("yarn") => float(c.rope_of("full_attention", names).map(|v| real(names[0], v)).transpose()?),
        _ => Ok(None),
    }
}

/// The kind of RoPE scaling.
pub(super) fn rope_type(c: &Config) -> Option<&str> {
    c.rope_of("full_attention", &["rope_type", "type"]).and_then(Value::as_str)
}

/// The name of a scaling that GGUF has keys for; none for the kinds that are tensors.
fn scaling(c: &Config) -> Result<Option<&'static str>, ConfigError> {
    match rope_type(c) {
        None | Some("default" | "mrope" | "llama3" | "longrope" | "su") => Ok(None),
        Some("linear") => Ok(Some("linear")),
        Some("yarn") => {
            check_yarn(c)?;
            Ok(Some("yarn"))
        }
        Some(other) => Err(ConfigError::Unsupported { what: format!("RoPE scaling of type {other:?}") }),
    }
}

/// Numbers of YaRN other than the usual ones, which families read differently.
fn check_yarn(c: &Config) -> Result<(), ConfigError> {
    const USUAL: &[(&str, f32)] =
        &[("beta_fast", 32.0), ("beta_slow", 1.0), ("attention_factor", 1.0), ("extrapolation_factor", 1.0)];
    for (name, usual) in USUAL {
        let found = c.rope_of("full_attention", &[name]).map(|v| real(name, v)).transpose()?;
        c.refuse_unless(found.is_none_or(|x| x == *usual), || format!("YaRN with {name} {found:?}"))?;
    }
    Ok(())
}

/// True for YaRN whose ramp begins and ends between pairs, which GGUF cannot say: readers round its ends.
pub(super) fn has_untruncated_ramp(c: &Config) -> bool {
    rope_type(c) == Some("yarn") && c.rope_of("full_attention", &["truncate"]).is_some_and(|v| v == false)
}
