//! DeepSeek V2 and V3: latent attention, leading dense layers, experts.

use ggml_format::OwnedValue;

use super::common::{EXPERT_MLPS, MLP, NORMS_BEFORE, activation};
use crate::hf::class::{HfArch, Proof};
use crate::hf::config::{Config, ConfigError};
use crate::hf::keys::*;
use crate::hf::part::{Part, PartError, same};
use crate::hf::rules::{Rule, module, tensor};
use crate::recipe::Strides;

const ATTENTION: &[Rule] = &[
    module("attn_q", "self_attn.q_proj", same).when(|c, _| Ok(!has_q_rank(c))),
    module("attn_q_a", "self_attn.q_a_proj", same).when(|c, _| Ok(has_q_rank(c))),
    module("attn_q_a_norm", "self_attn.q_a_layernorm", same).when(|c, _| Ok(has_q_rank(c))),
    module("attn_q_b", "self_attn.q_b_proj", same).when(|c, _| Ok(has_q_rank(c))),
    module("attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa", same),
    module("attn_kv_a_norm", "self_attn.kv_a_layernorm", same),
    module("attn_k_b", "self_attn.kv_b_proj", key_part),
    module("attn_v_b", "self_attn.kv_b_proj", value_part),
    module("attn_output", "self_attn.o_proj", same),
];

const DENSE: &[Rule] = &[MLP[0].when(is_dense), MLP[1].when(is_dense), MLP[2].when(is_dense)];

const SPARSE: &[Rule] = &[
    EXPERT_MLPS[0].when(is_sparse),
    EXPERT_MLPS[1].when(is_sparse),
    EXPERT_MLPS[2].when(is_sparse),
    EXPERT_MLPS[3].when(is_sparse),
    tensor("exp_probs_b.bias", "mlp.gate.e_score_correction_bias", same).optional(),
    module("ffn_gate_shexp", "mlp.shared_experts.gate_proj", same).when(has_shared),
    module("ffn_up_shexp", "mlp.shared_experts.up_proj", same).when(has_shared),
    module("ffn_down_shexp", "mlp.shared_experts.down_proj", same).when(has_shared),
];

const LATENT: &[Key] = &[
    // As all heads share one key.
    key("attention.head_count_kv", |_| Ok(Some(1u32.into()))),
    key("attention.q_lora_rank", u32_of!("q_lora_rank")),
    key("attention.kv_lora_rank", u32_of!("kv_lora_rank")),
    key("attention.key_length", |c| sum(c.need(&["kv_lora_rank"])?, c.need(&["qk_rope_head_dim"])?)),
    key("attention.value_length", u32_of!("kv_lora_rank")),
    key("attention.key_length_mla", |c| sum(c.need(&["qk_nope_head_dim"])?, c.need(&["qk_rope_head_dim"])?)),
    key("attention.value_length_mla", u32_of!("v_head_dim")),
    key("rope.dimension_count", u32_of!("qk_rope_head_dim")),
    key("rope.scaling.yarn_log_multiplier", |c| {
        let scale = c.rope_f32(&["mscale_all_dim"])?;
        Ok(scale.map(|scale| OwnedValue::F32((0.1 * f64::from(scale)) as f32)))
    }),
];

const ROUTING: &[Key] = &[
    key("expert_group_count", u32_of!("n_group")),
    key("expert_group_used_count", u32_of!("topk_group")),
    key("expert_gating_func", |c| match c.str(&["scoring_func"])? {
        None => Ok(None),
        Some("softmax") => Ok(Some(1u32.into())),
        Some("sigmoid") => Ok(Some(2u32.into())),
        Some(other) => Err(ConfigError::Unsupported { what: format!("scoring_func {other:?}") }),
    }),
    key("leading_dense_block_count", |c| Ok(Some(n_dense(c)?.into()))),
    key("expert_feed_forward_length", u32_of!("moe_intermediate_size")),
    key("expert_shared_count", |c| Ok(Some(c.u32(&["n_shared_experts"])?.unwrap_or(0).into()))),
    key("expert_weights_scale", f32_of!("routed_scaling_factor")),
    key("expert_weights_norm", |c| Ok(c.flag("norm_topk_prob")?.then_some(true.into()))),
];

const KEYS: &[&[Key]] = &[SIZES, ROPE, NORMS, EXPERTS, ROUTING, VOCABULARY, LATENT];
const LAYERS: &[&[Rule]] = &[NORMS_BEFORE, ATTENTION, DENSE, SPARSE];

pub(in crate::hf) const CLASSES: &[HfArch] = &[
    HfArch::new("DeepseekV2ForCausalLM", "deepseek2", KEYS, LAYERS)
        .defaults(r#"{"rms_norm_eps": 1e-6, "n_shared_experts": 2, "routed_scaling_factor": 1.0}"#)
        .check(|c| {
            check(c)?;
            let method = c.str(&["topk_method"])?;
            // Groups are chosen by their best expert there, and by their two best ones in V3.
            let is_single = c.u32(&["n_group"])?.is_none_or(|n| n == 1);
            c.refuse_unless(is_single, || format!("topk_method {method:?} with groups"))
        })
        .proof(Proof::Tested),
    HfArch::new("DeepseekV3ForCausalLM", "deepseek2", KEYS, LAYERS)
        .defaults(
            r#"{"rms_norm_eps": 1e-6, "scoring_func": "sigmoid", "norm_topk_prob": true,
                "routed_scaling_factor": 2.5, "n_group": 8, "topk_group": 4,
                "first_k_dense_replace": 3, "n_shared_experts": 1,
                "num_experts_per_tok": 8}"#,
        )
        .check(|c| {
            check(c)?;
            let method = c.str(&["topk_method"])?;
            c.refuse_unless(matches!(method, None | Some("noaux_tc")), || format!("topk_method {method:?}"))
        })
        .proof(Proof::Tested),
];

fn sum(a: u32, b: u32) -> Result<Option<OwnedValue>, ConfigError> {
    Ok(a.checked_add(b).map(OwnedValue::U32))
}

fn check(c: &Config) -> Result<(), ConfigError> {
    activation(c, &["silu"])?;
    let step = c.u32(&["moe_layer_freq"])?.unwrap_or(1);
    c.refuse_unless(step == 1, || format!("moe_layer_freq {step}"))?;
    // Magnitudes cancel where both are the same, as in all published files.
    let [scale, all] = ["mscale", "mscale_all_dim"].map(|name| c.rope(&[name]).cloned());
    c.refuse_unless(scale == all, || format!("YaRN with mscale {scale:?} and mscale_all_dim {all:?}"))?;
    let adjacent = c.get(&["rope_interleave"]).is_none_or(|v| v == true);
    c.refuse_unless(adjacent, || "rope_interleave false".into())
}

fn has_q_rank(c: &Config) -> bool {
    c.get(&["q_lora_rank"]).is_some()
}

/// Leading layers without experts; all of them in a model without experts.
fn n_dense(c: &Config) -> Result<u32, ConfigError> {
    match (c.u32(&["first_k_dense_replace"])?, c.u32(&["n_routed_experts", "num_local_experts"])?) {
        (_, None) => c.n_layer(),
        (n, Some(_)) => Ok(n.unwrap_or(0)),
    }
}

fn is_dense(c: &Config, i: u32) -> Result<bool, ConfigError> {
    Ok(i < n_dense(c)?)
}

fn is_sparse(c: &Config, i: u32) -> Result<bool, ConfigError> {
    Ok(!is_dense(c, i)?)
}

fn has_shared(c: &Config, i: u32) -> Result<bool, ConfigError> {
    Ok(is_sparse(c, i)? && c.u32(&["n_shared_experts"])?.is_some_and(|n| n > 0))
}

/// Heads, and the rows of a head that make keys and values.
fn sizes(c: &Config) -> Result<(u64, u64, u64), ConfigError> {
    Ok((c.n_head()?.into(), c.need(&["qk_nope_head_dim"])?.into(), c.need(&["v_head_dim"])?.into()))
}

/// `[n_head (nope + v), rank]` to `[n_head, rank, nope]`.
fn key_part(c: &Config, part: Part) -> Result<Part, PartError> {
    let (n_head, nope, v) = sizes(c)?;
    let part = part.rank(2)?.pick(Strides::new(0, &[(n_head, nope + v), (nope, 1)]))?;
    let rank = part.shape[1];
    Part { shape: vec![n_head, nope, rank], recipe: part.recipe }.swapped()
}

/// `[n_head (nope + v), rank]` to `[n_head, v, rank]`.
fn value_part(c: &Config, part: Part) -> Result<Part, PartError> {
    let (n_head, nope, v) = sizes(c)?;
    let part = part.rank(2)?.pick(Strides::new(nope, &[(n_head, nope + v), (v, 1)]))?;
    Ok(Part { shape: vec![n_head, v, part.shape[1]], recipe: part.recipe })
}
