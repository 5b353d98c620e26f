//! Granite, and models with state spaces or short convolutions: Mamba 2, Granite hybrids, Falcon-H1, LFM 2.

use ggml_format::OwnedValue;

use super::common::{ATTENTION, ATTENTION_PAIRS, MAMBA_TOP, MLP, NORMS_BEFORE, activation, i32s, plain};
use crate::hf::class::{HfArch, Proof};
use crate::hf::config::{Config, ConfigError, Found, real, unexpected};
use crate::hf::keys::*;
use crate::hf::part::{Part, PartError, column, first_half, neg_exp_column, same, second_half, squeeze};
use crate::hf::rules::{Rule, module, tensor};
use crate::recipe::{Recipe, Strides};

const GRANITE_SCALES: &[Key] = &[
    key("attention.scale", f32_of!("attention_multiplier")),
    key("embedding_scale", f32_of!("embedding_multiplier")),
    key("residual_scale", f32_of!("residual_multiplier")),
    key("logit_scale", f32_of!("logits_scaling")),
];

/// States grow without bound, so the context is a formality: 2^20, as llama.cpp's converter writes it.
const ENDLESS: &[Key] = &[key("context_length", |_| Ok(Some((1u32 << 20).into())))];

const MAMBA2: &[Key] = &[
    key("block_count", |c| Ok(Some(c.n_layer()?.into()))),
    key("embedding_length", |c| Ok(Some(c.n_embd()?.into()))),
    key("feed_forward_length", |_| Ok(Some(0u32.into()))),
    key("attention.head_count", |_| Ok(Some(0u32.into()))),
    key("ssm.conv_kernel", u32_of!("conv_kernel")),
    key("ssm.inner_size", |c| Ok(c.need(&["expand"])?.checked_mul(c.n_embd()?).map(OwnedValue::U32))),
    key("ssm.state_size", u32_of!("state_size")),
    key("ssm.time_step_rank", u32_of!("num_heads")),
    key("ssm.group_count", u32_of!("n_groups")),
    key("attention.layer_norm_rms_epsilon", f32_of!("layer_norm_epsilon")),
];

/// The same by the names of hybrids.
const MAMBA2_OF_HYBRID: &[Key] = &[
    key("ssm.conv_kernel", u32_of!("mamba_d_conv")),
    key("ssm.state_size", u32_of!("mamba_d_state")),
    key("ssm.group_count", u32_of!("mamba_n_groups")),
    key("ssm.time_step_rank", u32_of!("mamba_n_heads")),
    key("ssm.inner_size", |c| Ok(Some(inner_size(c)?.into()))),
];

/// Channels of the state spaces.
fn inner_size(c: &Config) -> Result<u32, ConfigError> {
    if let Some(n) = c.u32(&["mamba_d_ssm"])? {
        return Ok(n);
    }
    let n = c.need(&["mamba_expand", "expand"])?.checked_mul(c.n_embd()?);
    n.ok_or_else(|| ConfigError::Unsupported { what: "mamba_expand times hidden_size beyond 2^32".into() })
}

/// KV heads of each layer: none where there is no attention.
fn kv_heads_by_layer(c: &Config) -> Found {
    let n = c.n_head_kv()?;
    let layers = 0..c.n_layer()?;
    let heads: Vec<u32> =
        layers.map(|i| Ok(if is_attention(c, i)? { n } else { 0 })).collect::<Result<_, ConfigError>>()?;
    Ok(Some(i32s(heads.into_iter())))
}

const KV_BY_LAYER: &[Key] = &[key("attention.head_count_kv", kv_heads_by_layer)];

const GRANITE_HYBRID: &[Key] = &[
    key("expert_shared_feed_forward_length", u32_of!("shared_intermediate_size")),
    // True would mean RoPE, which these have not.
    key("rope.scaling.finetuned", |_| Ok(Some(false.into()))),
];

const LFM2: &[Key] = &[
    key("shortconv.l_cache", u32_of!("conv_L_cache")),
    key("feed_forward_length", |c| {
        let n = c.need(&["block_ff_dim", "intermediate_size"])?;
        if !c.flag("block_auto_adjust_ff_dim")? {
            return Ok(Some(n.into()));
        }
        let multiple = c.u32(&["block_multiple_of"])?.unwrap_or(256).max(1);
        let factor = c.f32(&["block_ffn_dim_multiplier"])?.unwrap_or(1.0);
        let n = ((2 * u64::from(n) / 3) as f64 * f64::from(factor)) as u32;
        Ok(n.checked_next_multiple_of(multiple).map(OwnedValue::U32))
    }),
];

/// Names of Mamba 2's tensors behind those of their module.
macro_rules! mamba2 {
    ($module:literal) => {
        [
            module("ssm_in", concat!($module, ".in_proj"), same),
            module("ssm_conv1d", concat!($module, ".conv1d"), conv),
            tensor("ssm_dt.bias", concat!($module, ".dt_bias"), same),
            tensor("ssm_a", concat!($module, ".A_log"), neg_exp_column),
            tensor("ssm_d", concat!($module, ".D"), column),
            module("ssm_norm", concat!($module, ".norm"), groups),
            module("ssm_out", concat!($module, ".out_proj"), same),
        ]
    };
}

/// The convolution: its weights without the middle dimension, its bias as it is.
fn conv(c: &Config, part: Part) -> Result<Part, PartError> {
    if part.shape.len() == 1 { Ok(part) } else { squeeze(c, part) }
}

/// A norm of groups: `[inner]` to `[n_group, inner / n_group]`.
fn groups(c: &Config, part: Part) -> Result<Part, PartError> {
    let n = u64::from(c.u32(&["n_groups", "mamba_n_groups"])?.unwrap_or(1)).max(1);
    let inner = part.n_row();
    part.rank(1)?.reshape(&[n, inner / n])
}

const MIXER: [Rule; 7] = mamba2!("mixer");
const MAMBA: [Rule; 7] = mamba2!("mamba");

/// Layers of Granite hybrids.
const HYBRID: &[Rule] = &[
    MAMBA[0].when(is_recurrent),
    MAMBA[1].when(is_recurrent),
    MAMBA[2].when(is_recurrent),
    MAMBA[3].when(is_recurrent),
    MAMBA[4].when(is_recurrent),
    MAMBA[5].when(is_recurrent),
    MAMBA[6].when(is_recurrent),
    ATTENTION_PAIRS[0].when(is_attention),
    ATTENTION_PAIRS[1].when(is_attention),
    ATTENTION_PAIRS[2].when(is_attention),
    ATTENTION_PAIRS[3].when(is_attention),
    module("ffn_gate", "shared_mlp.input_linear", first_half),
    module("ffn_up", "shared_mlp.input_linear", second_half),
    module("ffn_down", "shared_mlp.output_linear", same),
];

/// Falcon-H1: attention and state spaces in parallel, with multipliers in the matrices.
const FALCON_H1: &[Rule] = &[
    module("attn_norm", "input_layernorm", same),
    // Without `.weight`, as the files have it.
    tensor("ffn_norm", "pre_ff_layernorm.weight", same),
    module("attn_q", "self_attn.q_proj", |c, part| times(c, part, &["attention_in_multiplier"], &[])),
    module("attn_k", "self_attn.k_proj", |c, part| {
        times(c, part, &["attention_in_multiplier"], &["key_multiplier"])
    }),
    module("attn_v", "self_attn.v_proj", |c, part| times(c, part, &["attention_in_multiplier"], &[])),
    module("attn_output", "self_attn.o_proj", |c, part| times(c, part, &[], &["attention_out_multiplier"])),
    module("ssm_in", "mamba.in_proj", by_segment),
    MAMBA[1],
    MAMBA[2],
    MAMBA[3],
    MAMBA[4],
    module("ssm_norm", "mamba.norm", groups).when(|c, _| c.flag("mamba_rms_norm")),
    module("ssm_out", "mamba.out_proj", |c, part| times(c, part, &[], &["ssm_out_multiplier"])),
    module("ffn_gate", "feed_forward.gate_proj", |c, part| of_mlp(c, part, 0)),
    module("ffn_up", "feed_forward.up_proj", same),
    module("ffn_down", "feed_forward.down_proj", |c, part| of_mlp(c, part, 1)),
];

const FALCON_H1_TOP: &[Rule] = &[
    module("token_embd", "model.embed_tokens", |c, part| times(c, part, &[], &["embedding_multiplier"])),
    module("output_norm", "model.final_layernorm", same),
    module("output", "lm_head", |c, part| times(c, part, &[], &["lm_head_multiplier"])).head(),
];

const LFM2_LAYERS: &[Rule] = &[
    module("attn_norm", "operator_norm", same),
    module("ffn_norm", "ffn_norm", same),
    module("shortconv.conv", "conv.conv", conv).when(is_recurrent),
    module("shortconv.in_proj", "conv.in_proj", same).when(is_recurrent),
    module("shortconv.out_proj", "conv.out_proj", same).when(is_recurrent),
    ATTENTION[0].when(is_attention),
    ATTENTION[1].when(is_attention),
    ATTENTION[2].when(is_attention),
    module("attn_output", "self_attn.out_proj", same).when(is_attention),
    module("attn_q_norm", "self_attn.q_layernorm", same).when(is_attention),
    module("attn_k_norm", "self_attn.k_layernorm", same).when(is_attention),
    module("ffn_gate", "feed_forward.w1", same),
    module("ffn_down", "feed_forward.w2", same),
    module("ffn_up", "feed_forward.w3", same),
];

const LFM2_TOP: &[Rule] = &[
    module("token_embd", "model.embed_tokens", same),
    module("token_embd_norm", "model.embedding_norm", same),
    module("output", "lm_head", same).head(),
];

const MAMBA2_LAYERS: &[Rule] = &[
    module("attn_norm", "norm", same),
    MIXER[0],
    MIXER[1],
    MIXER[2],
    MIXER[3],
    MIXER[4],
    MIXER[5],
    MIXER[6],
];

/// Granite has no key for the size of a head.
const GRANITE: &[&[Key]] = &[SIZES, KV_HEADS, ROPE, NORMS, EXPERTS, VOCABULARY, ROPE_WHOLE, GRANITE_SCALES];

pub(in crate::hf) const CLASSES: &[HfArch] = &[
    HfArch::new("GraniteForCausalLM", "granite", GRANITE, &[NORMS_BEFORE, ATTENTION_PAIRS, MLP])
        .defaults(
            r#"{"attention_multiplier": 1.0, "embedding_multiplier": 1.0, "logits_scaling": 1.0,
                "residual_multiplier": 1.0, "rms_norm_eps": 1e-6}"#,
        )
        .check(even_heads)
        .proof(Proof::Tested),
    HfArch::new(
        "GraniteMoeHybridForCausalLM",
        "granitehybrid",
        &[
            SIZES,
            ENDLESS,
            KV_BY_LAYER,
            ROPE,
            NORMS,
            EXPERTS,
            VOCABULARY,
            ROPE_WHOLE,
            GRANITE_SCALES,
            MAMBA2_OF_HYBRID,
            GRANITE_HYBRID,
        ],
        &[NORMS_BEFORE, HYBRID],
    )
    .defaults(
        r#"{"attention_multiplier": 1.0, "embedding_multiplier": 1.0, "logits_scaling": 1.0,
                "num_experts_per_tok": 2, "residual_multiplier": 1.0,
                "rms_norm_eps": 1e-6}"#,
    )
    .check(check_hybrid)
    .proof(Proof::Tested),
    HfArch::new("Mamba2ForCausalLM", "mamba2", &[ENDLESS, MAMBA2], &[MAMBA2_LAYERS])
        .top(MAMBA_TOP)
        .prefix("backbone.layers.{i}.")
        .defaults(r#"{"tie_word_embeddings": false, "layer_norm_epsilon": 1e-5, "expand": 2}"#)
        .check(|c| {
            activation(c, &["silu"])?;
            time_limit(c)
        })
        .proof(Proof::Tested),
    HfArch::new(
        "FalconH1ForCausalLM",
        "falcon-h1",
        &[SIZES, KV_HEADS, ROPE, NORMS, HEAD_DIM, VOCABULARY, MAMBA2_OF_HYBRID],
        &[FALCON_H1],
    )
    .top(FALCON_H1_TOP)
    .defaults(r#"{"rms_norm_eps": 1e-5}"#)
    .check(|c| {
        plain(c)?;
        time_limit(c)?;
        let is_tied = c.flag("tie_word_embeddings")?;
        c.refuse_unless(!is_tied, || "tie_word_embeddings true, with multipliers of both ends".into())
    })
    .proof(Proof::Tested),
    HfArch::new(
        "Lfm2ForCausalLM",
        "lfm2",
        &[SIZES, KV_BY_LAYER, ROPE, NORMS, VOCABULARY, LFM2],
        &[LFM2_LAYERS],
    )
    .top(LFM2_TOP)
    .defaults(r#"{"tie_word_embeddings": true, "norm_eps": 1e-5, "rope_theta": 1000000.0}"#)
    .proof(Proof::Tested),
];

/// Kinds of layers with attention; versions of transformers and families name them differently.
fn is_attention(c: &Config, i: u32) -> Result<bool, ConfigError> {
    c.is_kind(i, &["attention", "full_attention"])
}

fn is_recurrent(c: &Config, i: u32) -> Result<bool, ConfigError> {
    c.is_kind(i, &["mamba", "linear_attention", "conv"])
}

/// Heads have as many channels as the stream has for each.
fn even_heads(c: &Config) -> Result<(), ConfigError> {
    plain(c)?;
    let even = c.n_embd()? / c.n_head()?;
    c.refuse_unless(c.head_dim()? == even, || {
        format!("head_dim {} where heads have {even} channels", c.head_dim().unwrap_or(0))
    })
}

/// Time steps are not clamped: the limit is absent, or `[0, infinity]`.
fn time_limit(c: &Config) -> Result<(), ConfigError> {
    let Some(value) = c.get(&["time_step_limit"]) else { return Ok(()) };
    let Some([low, high]) = value.as_array().map(Vec::as_slice) else {
        return Err(unexpected("time_step_limit", "two numbers", value));
    };
    // Python writes `Infinity`, which is read as null.
    let low = real("time_step_limit", low)?;
    let is_open = low <= 0.0 && (high.is_null() || real("time_step_limit", high)? == f32::INFINITY);
    c.refuse_unless(is_open, || format!("time_step_limit {value}"))
}

fn check_hybrid(c: &Config) -> Result<(), ConfigError> {
    even_heads(c)?;
    time_limit(c)?;
    let positions = c.str(&["position_embedding_type"])?;
    c.refuse_unless(positions != Some("rope"), || "position_embedding_type \"rope\"".into())?;
    let n_expert = c.u32(&["num_local_experts"])?.unwrap_or(0);
    c.refuse_unless(n_expert == 0, || format!("num_local_experts {n_expert}"))?;
    let mut n_recurrent = 0;
    for i in 0..c.n_layer()? {
        let known = is_attention(c, i)? || is_recurrent(c, i)?;
        c.refuse_unless(known, || format!("layer_types of layer {i}"))?;
        n_recurrent += u32::from(is_recurrent(c, i)?);
    }
    c.refuse_unless(n_recurrent > 0, || "layer_types without recurrent layers".into())
}

/// Multiplied by numbers of the configuration, one after the other; as it is by 1. `inputs` multiply the input of the
/// module, which is the same for its matrix but not for its bias; `outputs` multiply its result.
fn times(c: &Config, part: Part, inputs: &[&str], outputs: &[&str]) -> Result<Part, PartError> {
    let is_bias = part.shape.len() == 1;
    let names = outputs.iter().chain(inputs.iter().filter(|_| !is_bias));
    let mut recipe = part.recipe;
    for name in names {
        let factor = c.f32(&[name])?.unwrap_or(1.0);
        recipe = if factor == 1.0 { recipe } else { recipe.times(factor) };
    }
    Ok(Part { recipe, ..part })
}

fn of_mlp(c: &Config, part: Part, which: usize) -> Result<Part, PartError> {
    let factor = c.f32s("mlp_multipliers", 2)?[which];
    Ok(Part { recipe: part.recipe.times(factor), ..part })
}

/// Rows of in_proj: z, x, B, C, time step, each with a multiplier.
fn by_segment(c: &Config, part: Part) -> Result<Part, PartError> {
    let inner = u64::from(inner_size(c)?);
    let state = u64::from(c.need(&["mamba_n_groups"])?) * u64::from(c.need(&["mamba_d_state"])?);
    let heads = u64::from(c.need(&["mamba_n_heads"])?);
    let factors = c.f32s("ssm_multipliers", 5)?;
    let part = times(c, part.rank(2)?, &["ssm_in_multiplier"], &[])?;
    let mut start = 0;
    let mut segments = Vec::new();
    for (n, factor) in [inner, inner, state, state, heads].into_iter().zip(factors) {
        segments.push(part.recipe.clone().rows(Strides::slice(start, n))?.times(factor));
        start += n;
    }
    if start != part.n_row() {
        return Err(PartError::Shape { expected: format!("of {start} rows"), found: part.shape });
    }
    Ok(Part { recipe: Recipe::concat(segments)?, ..part })
}
