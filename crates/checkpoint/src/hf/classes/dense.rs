//! Families that differ from Llama in norms, biases or the feed-forward part.
//!
//! No file of llama.cpp's converter is there to compare with; logits of small checkpoints are those of transformers
//! 5.23.

use ggml_format::OwnedValue;

use super::common::{
    ATTENTION, ATTENTION_PAIRS, EXPERT_MLPS, EXPERT_SIZES, MAMBA_TOP, MLP, NORM_SHARED, NORMS_AFTER,
    NORMS_BEFORE, QK_NORMS, SHARED_EXPERT, activation, experts_everywhere, no_window, plain,
};
use crate::hf::class::{HfArch, Proof};
use crate::hf::config::{Config, ConfigError};
use crate::hf::keys::*;
use crate::hf::part::{Part, PartError, neg_exp, plus_one, same, squeeze};
use crate::hf::rules::{Rule, module, tensor};
use crate::recipe::Strides;

/// A feed-forward part without a gate.
const UNGATED: &[Rule] = &[module("ffn_up", "mlp.up_proj", same), module("ffn_down", "mlp.down_proj", same)];

/// The same under the names of GPT-2.
const CONVOLUTIONS: &[Rule] = &[module("ffn_up", "mlp.c_fc", same), module("ffn_down", "mlp.c_proj", same)];

/// Norms of Seed-OSS, whose second one has the name of a norm behind attention.
const SEED_NORMS: &[Rule] = &[
    module("attn_norm", "input_layernorm", same),
    module("post_attention_norm", "post_attention_layernorm", same),
];

/// Norms of the heads of Hunyuan.
const HUNYUAN_NORMS: &[Rule] = &[
    module("attn_q_norm", "self_attn.query_layernorm", same),
    module("attn_k_norm", "self_attn.key_layernorm", same),
];

/// Norms of Nemotron, whose weights are stored without their 1.
const NEMOTRON_NORMS: &[Rule] = &[
    tensor("attn_norm.weight", "input_layernorm.weight", plus_one),
    tensor("attn_norm.bias", "input_layernorm.bias", same),
    tensor("ffn_norm.weight", "post_attention_layernorm.weight", plus_one),
    tensor("ffn_norm.bias", "post_attention_layernorm.bias", same),
];
const NEMOTRON_TOP: &[Rule] = &[
    module("token_embd", "model.embed_tokens", same),
    tensor("output_norm.weight", "model.norm.weight", plus_one),
    tensor("output_norm.bias", "model.norm.bias", same),
    module("output", "lm_head", same).head(),
];

const NEMOTRON_KEYS: &[Key] = &[key("attention.layer_norm_epsilon", f32_of!("norm_eps"))];

/// Olmo's norms have no weights.
const OLMO_TOP: &[Rule] =
    &[module("token_embd", "model.embed_tokens", same), module("output", "lm_head", same).head()];

/// Phi 1 and 2.
const PHI_TOP: &[Rule] = &[
    module("token_embd", "model.embed_tokens", same),
    module("output_norm", "model.final_layernorm", same),
    module("output", "lm_head", same).head(),
];
const PHI: &[Rule] = &[
    module("attn_norm", "input_layernorm", same),
    module("attn_q", "self_attn.q_proj", same),
    module("attn_k", "self_attn.k_proj", same),
    module("attn_v", "self_attn.v_proj", same),
    module("attn_output", "self_attn.dense", same),
    module("ffn_up", "mlp.fc1", same),
    module("ffn_down", "mlp.fc2", same),
];

/// GPT-NeoX and Pythia.
const NEOX_TOP: &[Rule] = &[
    module("token_embd", "gpt_neox.embed_in", same),
    module("output_norm", "gpt_neox.final_layer_norm", same),
    module("output", "embed_out", same),
];
const NEOX: &[Rule] = &[
    module("attn_norm", "input_layernorm", same),
    module("attn_qkv", "attention.query_key_value", qkv_of_heads),
    module("attn_output", "attention.dense", same),
    module("ffn_norm", "post_attention_layernorm", same),
    module("ffn_up", "mlp.dense_h_to_4h", same),
    module("ffn_down", "mlp.dense_4h_to_h", same),
];
const NEOX_KEYS: &[Key] = &[
    key("use_parallel_residual", |c| Ok(Some(c.bool("use_parallel_residual")?.unwrap_or(true).into()))),
    key("rope.dimension_count", |c| {
        let part = c.rope_f32(&["partial_rotary_factor", "rotary_pct"])?.unwrap_or(0.25);
        Ok(Some(((f64::from(c.head_dim()?) * f64::from(part)) as u32).into()))
    }),
];

/// Rows of q, k and v of each head in turn, to all of q, all of k and all of v.
fn qkv_of_heads(c: &Config, part: Part) -> Result<Part, PartError> {
    let (n_head, head_dim) = (c.n_head()?.into(), c.head_dim()?.into());
    part.pick(Strides::swapped(1, n_head, 3, head_dim))
}

/// The first version of Mamba.
const MAMBA: &[Rule] = &[
    module("attn_norm", "norm", same),
    module("ssm_in", "mixer.in_proj", same),
    tensor("ssm_conv1d.weight", "mixer.conv1d.weight", squeeze),
    tensor("ssm_conv1d.bias", "mixer.conv1d.bias", same),
    module("ssm_x", "mixer.x_proj", same),
    module("ssm_dt", "mixer.dt_proj", same),
    tensor("ssm_a", "mixer.A_log", neg_exp),
    tensor("ssm_d", "mixer.D", same),
    module("ssm_out", "mixer.out_proj", same),
];
const MAMBA_KEYS: &[Key] = &[
    key("context_length", |_| Ok(Some((1u32 << 20).into()))),
    key("block_count", |c| Ok(Some(c.n_layer()?.into()))),
    key("embedding_length", |c| Ok(Some(c.n_embd()?.into()))),
    key("feed_forward_length", |_| Ok(Some(0u32.into()))),
    key("attention.head_count", |_| Ok(Some(0u32.into()))),
    key("ssm.conv_kernel", u32_of!("conv_kernel", "d_conv")),
    key("ssm.inner_size", |c| {
        let n = c.u32(&["intermediate_size", "d_inner"])?;
        let of_factor = c.u32(&["expand"])?.unwrap_or(2).checked_mul(c.n_embd()?);
        Ok(n.or(of_factor).map(OwnedValue::U32))
    }),
    key("ssm.state_size", u32_of!("state_size", "d_state")),
    key("ssm.time_step_rank", |c| {
        let n = c.u32(&["time_step_rank", "dt_rank"])?;
        Ok(Some(n.unwrap_or(c.n_embd()?.div_ceil(16)).into()))
    }),
    key("attention.layer_norm_rms_epsilon", f32_of!("layer_norm_epsilon", "rms_norm_eps")),
];

/// GLM 4.5: layers without experts first.
const GLM_EXPERTS: &[Rule] = &[
    MLP[0].when(is_dense),
    MLP[1].when(is_dense),
    MLP[2].when(is_dense),
    EXPERT_MLPS[0].when(is_sparse),
    EXPERT_MLPS[1].when(is_sparse),
    EXPERT_MLPS[2].when(is_sparse),
    EXPERT_MLPS[3].when(is_sparse),
    tensor("exp_probs_b.bias", "mlp.gate.e_score_correction_bias", same).when(is_sparse),
    module("ffn_gate_shexp", "mlp.shared_experts.gate_proj", same).when(is_sparse),
    module("ffn_up_shexp", "mlp.shared_experts.up_proj", same).when(is_sparse),
    module("ffn_down_shexp", "mlp.shared_experts.down_proj", same).when(is_sparse),
];
const GLM_NORMS: &[Rule] = &[QK_NORMS[0].optional(), QK_NORMS[1].optional()];
const GLM_KEYS: &[Key] = &[
    key("leading_dense_block_count", u32_of!("first_k_dense_replace")),
    key("expert_shared_count", u32_of!("n_shared_experts")),
    key("expert_feed_forward_length", u32_of!("moe_intermediate_size")),
    key("expert_group_count", u32_of!("n_group")),
    key("expert_group_used_count", u32_of!("topk_group")),
    key("expert_weights_scale", f32_of!("routed_scaling_factor")),
    key("expert_weights_norm", |c| Ok(Some(c.flag("norm_topk_prob")?.into()))),
    // Sigmoid.
    key("expert_gating_func", |_| Ok(Some(2u32.into()))),
];

fn is_dense(c: &Config, i: u32) -> Result<bool, ConfigError> {
    Ok(i < c.u32(&["first_k_dense_replace"])?.unwrap_or(0))
}

fn is_sparse(c: &Config, i: u32) -> Result<bool, ConfigError> {
    Ok(!is_dense(c, i)?)
}

const USUAL: &[&[Key]] = &[SIZES, KV_HEADS, ROPE, NORMS, HEAD_DIM];
const PARTIAL: &[&[Key]] = &[SIZES, KV_HEADS, ROPE, NORMS, HEAD_DIM, ROPE_PART];

const LOGIT_SCALE: &[Key] = &[key("logit_scale", f32_of!("logit_scale"))];
const CLAMP: &[Key] = &[key("attention.clamp_kqv", f32_of!("clip_qkv"))];

pub(in crate::hf) const CLASSES: &[HfArch] = &[
    HfArch::new("ArceeForCausalLM", "arcee", USUAL, &[NORMS_BEFORE, ATTENTION_PAIRS, UNGATED])
        .defaults(r#"{"rms_norm_eps": 1e-5}"#)
        .check(|c| activation(c, &["relu2"]))
        .proof(Proof::Logits),
    HfArch::new("SeedOssForCausalLM", "seed_oss", USUAL, &[SEED_NORMS, ATTENTION, MLP])
        .defaults(r#"{"head_dim": 128, "rms_norm_eps": 1e-6}"#)
        .check(plain)
        .proof(Proof::Logits),
    HfArch::new("Ernie4_5ForCausalLM", "ernie4_5", USUAL, &[NORMS_BEFORE, ATTENTION, MLP])
        .defaults(r#"{"head_dim": 128, "rms_norm_eps": 1e-5, "rope_theta": 500000.0}"#)
        .check(plain)
        .proof(Proof::Logits),
    HfArch::new(
        "HunYuanDenseV1ForCausalLM",
        "hunyuan-dense",
        USUAL,
        &[NORMS_BEFORE, ATTENTION, HUNYUAN_NORMS, MLP],
    )
    .defaults(r#"{"rms_norm_eps": 1e-5}"#)
    .check(plain)
    .proof(Proof::Logits),
    HfArch::new("Starcoder2ForCausalLM", "starcoder2", USUAL, &[NORMS_BEFORE, ATTENTION, CONVOLUTIONS])
        .defaults(r#"{"tie_word_embeddings": true, "norm_epsilon": 1e-5}"#)
        .check(|c| {
            activation(c, &["gelu_pytorch_tanh"])?;
            no_window(c)
        })
        .proof(Proof::Logits),
    HfArch::new("StableLmForCausalLM", "stablelm", PARTIAL, &[NORMS_BEFORE, ATTENTION, MLP])
        .defaults(r#"{"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.25}"#)
        .check(|c| {
            plain(c)?;
            c.refuse_unless(!c.flag("qk_layernorm")?, || "qk_layernorm true".into())?;
            c.refuse_unless(!c.flag("use_parallel_residual")?, || "use_parallel_residual true".into())
        })
        .proof(Proof::Logits),
    HfArch::new("OlmoForCausalLM", "olmo", &[SIZES, KV_HEADS, ROPE, NORMS, CLAMP], &[ATTENTION_PAIRS, MLP])
        .top(OLMO_TOP)
        .defaults(r#"{"layer_norm_eps": 1e-5}"#)
        .check(plain)
        .proof(Proof::Logits),
    HfArch::new(
        "OlmoeForCausalLM",
        "olmoe",
        &[SIZES, KV_HEADS, ROPE, NORMS, EXPERTS],
        &[NORMS_BEFORE, ATTENTION, QK_NORMS, EXPERT_MLPS],
    )
    .defaults(r#"{"num_experts_per_tok": 8, "rms_norm_eps": 1e-5}"#)
    .check(|c| {
        plain(c)?;
        even_experts(c)?;
        c.refuse_unless(c.get(&["clip_qkv"]).is_none(), || "clip_qkv".into())
    })
    .proof(Proof::Logits),
    HfArch::new(
        "Qwen2MoeForCausalLM",
        "qwen2moe",
        &[SIZES, KV_HEADS, ROPE, NORMS, EXPERTS, EXPERT_SIZES],
        &[NORMS_BEFORE, ATTENTION, EXPERT_MLPS, SHARED_EXPERT],
    )
    .defaults(r#"{"num_experts_per_tok": 4, "rms_norm_eps": 1e-6, "use_sliding_window": false}"#)
    .check(|c| {
        plain(c)?;
        even_experts(c)?;
        experts_everywhere(c)
    })
    .proof(Proof::Logits),
    HfArch::new(
        "NemotronForCausalLM",
        "nemotron",
        &[SIZES, KV_HEADS, ROPE, HEAD_DIM, ROPE_PART, NEMOTRON_KEYS],
        &[NEMOTRON_NORMS, ATTENTION, UNGATED],
    )
    .top(NEMOTRON_TOP)
    .defaults(r#"{"norm_eps": 1e-5, "partial_rotary_factor": 0.5}"#)
    .check(|c| activation(c, &["relu2"]))
    .proof(Proof::Logits),
    HfArch::new(
        "CohereForCausalLM",
        "command-r",
        &[SIZES, KV_HEADS, ROPE, NORMS, LOGIT_SCALE],
        &[NORM_SHARED, ATTENTION, MLP],
    )
    .defaults(
        r#"{"tie_word_embeddings": true, "layer_norm_eps": 1e-5, "logit_scale": 0.0625,
                "rope_theta": 500000.0}"#,
    )
    .check(|c| {
        plain(c)?;
        c.refuse_unless(!c.flag("use_qk_norm")?, || "use_qk_norm true".into())
    })
    .proof(Proof::Logits),
    HfArch::new("PhiForCausalLM", "phi2", PARTIAL, &[PHI])
        .top(PHI_TOP)
        .defaults(r#"{"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5}"#)
        .check(|c| {
            activation(c, &["gelu_new"])?;
            c.refuse_unless(!c.flag("qk_layernorm")?, || "qk_layernorm true".into())
        })
        .proof(Proof::Logits),
    HfArch::new("GPTNeoXForCausalLM", "gptneox", &[SIZES, ROPE, NORMS, NEOX_KEYS], &[NEOX])
        .top(NEOX_TOP)
        .prefix("gpt_neox.layers.{i}.")
        .defaults(r#"{"layer_norm_eps": 1e-5}"#)
        .check(|c| activation(c, &["gelu", "gelu_new"]))
        .proof(Proof::Logits),
    HfArch::new("MambaForCausalLM", "mamba", &[MAMBA_KEYS, VOCABULARY], &[MAMBA])
        .top(MAMBA_TOP)
        .prefix("backbone.layers.{i}.")
        .defaults(r#"{"tie_word_embeddings": true, "layer_norm_epsilon": 1e-5}"#)
        .check(|c| activation(c, &["silu"]))
        .proof(Proof::Logits),
    HfArch::new("Exaone4ForCausalLM", "exaone4", USUAL, &[ATTENTION, QK_NORMS, NORMS_AFTER, MLP])
        .defaults(r#"{"rms_norm_eps": 1e-5, "sliding_window": 4096}"#)
        .check(|c| {
            plain(c)?;
            let kinds = c.layer_types()?.unwrap_or_default();
            c.refuse_unless(kinds.iter().all(|kind| *kind == "full_attention"), || {
                "layers with windows".into()
            })
        })
        .proof(Proof::Logits),
    HfArch::new(
        "Glm4MoeForCausalLM",
        "glm4moe",
        &[SIZES, KV_HEADS, ROPE, NORMS, EXPERTS, HEAD_DIM, ROPE_PART, GLM_KEYS],
        &[SEED_NORMS, ATTENTION, GLM_NORMS, GLM_EXPERTS],
    )
    .defaults(
        r#"{"partial_rotary_factor": 0.5, "first_k_dense_replace": 1, "n_group": 1,
                "n_shared_experts": 1, "norm_topk_prob": true,
                "num_experts_per_tok": 8, "rms_norm_eps": 1e-5,
                "routed_scaling_factor": 1.0, "topk_group": 1}"#,
    )
    .check(plain)
    .proof(Proof::Logits),
];

/// Weights of experts are used as the router gives them.
fn even_experts(c: &Config) -> Result<(), ConfigError> {
    c.refuse_unless(!c.flag("norm_topk_prob")?, || "norm_topk_prob true".into())
}
