//! Qwen 3 Next and 3.5: gated delta rule, every few layers attention.

use ggml_format::OwnedValue;

use super::common::{
    ATTENTION, EXPERT_MLPS, EXPERT_SIZES, MLP, SHARED_EXPERT, TOP_PLUS_ONE, activation, experts_everywhere,
    i32s,
};
use crate::hf::class::{HfArch, Proof};
use crate::hf::config::{Config, ConfigError, list, unexpected, whole};
use crate::hf::keys::*;
use crate::hf::part::{Part, PartError, neg_exp, plus_one, same, squeeze};
use crate::hf::rules::{Rule, module, tensor};
use crate::recipe::{Recipe, Strides};

const NORMS_PLUS_ONE: &[Rule] = &[
    module("attn_norm", "input_layernorm", plus_one),
    module("post_attention_norm", "post_attention_layernorm", plus_one),
];

/// Attention, in layers that have it.
const FULL: &[Rule] = &[
    ATTENTION[0].when(is_full),
    ATTENTION[1].when(is_full),
    ATTENTION[2].when(is_full),
    ATTENTION[3].when(is_full),
    module("attn_q_norm", "self_attn.q_norm", plus_one).when(is_full),
    module("attn_k_norm", "self_attn.k_norm", plus_one).when(is_full),
];

/// Projections of Qwen 3 Next: those of a key head side by side.
const LINEAR_NEXT: &[Rule] = &[
    module("attn_qkv", "linear_attn.in_proj_qkvz", qkv_of_heads).when(is_linear),
    module("attn_gate", "linear_attn.in_proj_qkvz", z_of_heads).when(is_linear),
    module("ssm_ba", "linear_attn.in_proj_ba", same).when(is_linear),
    module("ssm_conv1d", "linear_attn.conv1d", squeeze).when(is_linear),
    tensor("ssm_dt.bias", "linear_attn.dt_bias", same).when(is_linear),
    tensor("ssm_a", "linear_attn.A_log", neg_exp).when(is_linear),
    module("ssm_norm", "linear_attn.norm", same).when(is_linear),
    module("ssm_out", "linear_attn.out_proj", same).when(is_linear),
];

/// Projections of Qwen 3.5: value heads in an order of their own.
const LINEAR_35: &[Rule] = &[
    module("attn_qkv", "linear_attn.in_proj_qkv", values_of_qkv).when(is_linear),
    module("attn_gate", "linear_attn.in_proj_z", value_rows).when(is_linear),
    module("ssm_alpha", "linear_attn.in_proj_a", value_heads).when(is_linear),
    module("ssm_beta", "linear_attn.in_proj_b", value_heads).when(is_linear),
    module("ssm_conv1d", "linear_attn.conv1d", |c, part| values_of_qkv(c, squeeze(c, part)?)).when(is_linear),
    tensor("ssm_dt.bias", "linear_attn.dt_bias", value_heads).when(is_linear),
    tensor("ssm_a", "linear_attn.A_log", |c, part| neg_exp(c, value_heads(c, part)?)).when(is_linear),
    module("ssm_norm", "linear_attn.norm", same).when(is_linear),
    module("ssm_out", "linear_attn.out_proj", value_cols).when(is_linear),
];

const SSM: &[Key] = &[
    key("ssm.conv_kernel", u32_of!("linear_conv_kernel_dim")),
    key("ssm.state_size", u32_of!("linear_key_head_dim")),
    key("ssm.group_count", u32_of!("linear_num_key_heads")),
    key("ssm.time_step_rank", u32_of!("linear_num_value_heads")),
    key("ssm.inner_size", |c| {
        let n = c.need(&["linear_value_head_dim"])?.checked_mul(c.need(&["linear_num_value_heads"])?);
        Ok(n.map(OwnedValue::U32))
    }),
    key("attention.recurrent_layers", |c| {
        let layers = 0..c.n_layer()?;
        Ok(Some(layers.map(|i| is_linear(c, i)).collect::<Result<Vec<bool>, _>>()?.into()))
    }),
    key("full_attention_interval", |c| Ok(Some(interval(c)?.into()))),
];

/// Channels of each component of a position.
const SECTIONS: &[Key] = &[key("rope.dimension_sections", |c| {
    let found = match c.rope(&["mrope_section"]) {
        Some(value) => list("mrope_section", value)?
            .iter()
            .map(|v| whole("mrope_section", v))
            .collect::<Result<Vec<_>, _>>()?,
        None => vec![11, 11, 10],
    };
    Ok(Some(i32s(found.into_iter().chain([0; 4]).take(4))))
})];

pub(in crate::hf) const CLASSES: &[HfArch] = &[
    HfArch::new(
        "Qwen3NextForCausalLM",
        "qwen3next",
        &[SIZES, KV_HEADS, ROPE, NORMS, EXPERTS, HEAD_DIM, EXPERT_SIZES, SSM, ROPE_QUARTER],
        &[NORMS_PLUS_ONE, FULL, LINEAR_NEXT, EXPERT_MLPS, SHARED_EXPERT],
    )
    .top(TOP_PLUS_ONE)
    .defaults(r#"{"head_dim": 256, "norm_topk_prob": true, "num_experts_per_tok": 10, "rms_norm_eps": 1e-6}"#)
    .check(|c| {
        check(c)?;
        experts_everywhere(c)?;
        c.refuse_unless(c.flag("norm_topk_prob")?, || "norm_topk_prob false".into())
    })
    .proof(Proof::Tested),
    HfArch::new("Qwen3_5ForCausalLM", "qwen35", QWEN35_KEYS, QWEN35_LAYERS)
        .top(TOP_PLUS_ONE)
        .defaults(r#"{"head_dim": 256, "rms_norm_eps": 1e-6}"#)
        .check(check)
        .proof(Proof::Tested),
    HfArch::new("Qwen3_5ForConditionalGeneration", "qwen35", QWEN35_KEYS, QWEN35_LAYERS)
        .top(TOP_PLUS_ONE)
        .defaults(r#"{"head_dim": 256, "rms_norm_eps": 1e-6}"#)
        .check(check)
        .proof(Proof::Like("Qwen3_5ForCausalLM")),
];

const QWEN35_KEYS: &[&[Key]] = &[SIZES, KV_HEADS, SECTIONS, ROPE, NORMS, HEAD_DIM, SSM, ROPE_QUARTER];
const QWEN35_LAYERS: &[&[Rule]] = &[NORMS_PLUS_ONE, FULL, LINEAR_35, MLP];

fn interval(c: &Config) -> Result<u32, ConfigError> {
    Ok(c.u32(&["full_attention_interval"])?.unwrap_or(4))
}

fn is_full(c: &Config, i: u32) -> Result<bool, ConfigError> {
    match c.layer_types()? {
        Some(_) => c.is_kind(i, &["full_attention"]),
        None => Ok(interval(c)? > 0 && (i + 1) % interval(c)? == 0),
    }
}

fn is_linear(c: &Config, i: u32) -> Result<bool, ConfigError> {
    Ok(!is_full(c, i)?)
}

fn check(c: &Config) -> Result<(), ConfigError> {
    activation(c, &["silu"])?;
    let heads = Heads::of(c)?;
    c.refuse_unless(heads.n_key > 0 && heads.per_key > 0, || "linear attention without heads".into())?;
    let full = (0..c.n_layer()?).map(|i| is_full(c, i)).collect::<Result<Vec<_>, _>>()?;
    let n = interval(c)?;
    let fits = full.iter().enumerate().all(|(i, &full)| n > 0 && full == ((i as u32 + 1) % n == 0));
    c.refuse_unless(fits, || format!("attention in other layers than every {n}th"))
}

/// Limit of heads, and of the channels of one.
const MAX_SIZE: u32 = 1 << 15;

/// The heads of linear attention.
struct Heads {
    n_key: u64,
    /// Value heads of a key head.
    per_key: u64,
    key: u64,
    value: u64,
}

impl Heads {
    fn of(c: &Config) -> Result<Heads, ConfigError> {
        // Products of four such numbers fit in 64 bits.
        let n = |name| match c.need(&[name])? {
            n if n < MAX_SIZE => Ok(u64::from(n)),
            n => Err(unexpected(name, &format!("less than {MAX_SIZE}"), &n.into())),
        };
        let (n_key, n_value) = (n("linear_num_key_heads")?, n("linear_num_value_heads")?);
        let per_key = if n_key > 0 && n_value.is_multiple_of(n_key) { n_value / n_key } else { 0 };
        Ok(Heads { n_key, per_key, key: n("linear_key_head_dim")?, value: n("linear_value_head_dim")? })
    }

    /// Value heads by key head to value heads of all key heads, from row `start` on, `n` rows each.
    fn tiled(&self, start: u64, n: u64) -> Strides {
        Strides::new(start, &[(self.per_key, n), (self.n_key, self.per_key * n), (n, 1)])
    }
}

/// Rows of each key head [q, k, v, z] to all of q, all of k, all of v.
fn qkv_of_heads(c: &Config, part: Part) -> Result<Part, PartError> {
    let h = Heads::of(c)?;
    let values = h.per_key * h.value;
    let all = 2 * (h.key + values);
    let part = part.rank(2)?;
    let of = |start, n| part.recipe.clone().rows(Strides::new(start, &[(h.n_key, all), (n, 1)]));
    let recipe = Recipe::concat(vec![of(0, h.key)?, of(h.key, h.key)?, of(2 * h.key, values)?])?;
    Ok(Part { shape: vec![recipe.n_row(), recipe.n_col()], recipe })
}

/// The rows z.
fn z_of_heads(c: &Config, part: Part) -> Result<Part, PartError> {
    let h = Heads::of(c)?;
    let values = h.per_key * h.value;
    part.rank(2)?.pick(Strides::new(2 * h.key + values, &[(h.n_key, 2 * (h.key + values)), (values, 1)]))
}

/// Rows q and k as they are, those of value heads reordered.
fn values_of_qkv(c: &Config, part: Part) -> Result<Part, PartError> {
    let h = Heads::of(c)?;
    let n = 2 * h.n_key * h.key;
    let part = part.rank(2)?;
    let head = part.recipe.clone().rows(Strides::slice(0, n))?;
    let recipe = Recipe::concat(vec![head, part.recipe.rows(h.tiled(n, h.value))?])?;
    Ok(Part { shape: vec![recipe.n_row(), recipe.n_col()], recipe })
}

/// Rows of value heads.
fn value_rows(c: &Config, part: Part) -> Result<Part, PartError> {
    let h = Heads::of(c)?;
    part.pick(h.tiled(0, h.value))
}

/// A row or a number for each value head.
fn value_heads(c: &Config, part: Part) -> Result<Part, PartError> {
    part.pick(Heads::of(c)?.tiled(0, 1))
}

/// Columns of value heads.
fn value_cols(c: &Config, part: Part) -> Result<Part, PartError> {
    let h = Heads::of(c)?;
    let part = part.rank(2)?;
    Ok(Part { recipe: part.recipe.cols(h.tiled(0, h.value))?, shape: part.shape })
}
