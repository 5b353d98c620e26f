//! Llama and families that differ little from it.

use ggml_format::OwnedValue;
use serde_json::Value;

use super::common::{
    ATTENTION, ATTENTION_PAIRS, EXPERT_MLPS, MLP, NORM_SHARED, NORMS_AFTER, NORMS_BEFORE, QK_NORMS,
    activation, experts_everywhere, plain, window_pattern,
};
use crate::hf::class::{HfArch, Proof};
use crate::hf::config::{Config, ConfigError, whole};
use crate::hf::keys::*;
use crate::hf::part::same;
use crate::hf::rules::{Rule, module};

/// Experts of Mixtral: w1 is the gate, w3 its input, w2 the way back.
const MIXTRAL: &[Rule] = &[
    module("ffn_gate_inp", "block_sparse_moe.gate", same),
    module("ffn_gate_exps", "block_sparse_moe.experts.{e}.w1", same),
    module("ffn_down_exps", "block_sparse_moe.experts.{e}.w2", same),
    module("ffn_up_exps", "block_sparse_moe.experts.{e}.w3", same),
];

/// Gate and input above each other.
const FUSED_MLP: &[Rule] =
    &[module("ffn_up", "mlp.gate_up_proj", same), module("ffn_down", "mlp.down_proj", same)];

/// q, k and v above each other.
const FUSED_ATTENTION: &[Rule] =
    &[module("attn_qkv", "self_attn.qkv_proj", same), module("attn_output", "self_attn.o_proj", same)];

/// Norms around both parts.
const NORMS_AROUND: &[Rule] = &[
    module("attn_norm", "input_layernorm", same),
    module("post_attention_norm", "post_self_attn_layernorm", same),
    module("ffn_norm", "post_attention_layernorm", same),
    module("post_ffw_norm", "post_mlp_layernorm", same),
];

const LLAMA_KEYS: &[&[Key]] = &[SIZES, KV_HEADS, ROPE, NORMS, EXPERTS, HEAD_DIM, VOCABULARY, ROPE_WHOLE];
const QWEN2_KEYS: &[&[Key]] = &[SIZES, KV_HEADS, ROPE, NORMS, HEAD_DIM];

const EXPERT_SIZE: &[Key] = &[key("expert_feed_forward_length", u32_of!("moe_intermediate_size"))];

const PHI3: &[Key] = &[
    key("rope.scaling.original_context_length", u32_of!("original_max_position_embeddings")),
    key("rope.scaling.attn_factor", |c| Ok(long_scale(c)?.map(OwnedValue::F32))),
    key("rope.dimension_count", |c| {
        let part = c.rope_f32(&["partial_rotary_factor"])?;
        let n = (f64::from(c.n_embd()?) * f64::from(part.unwrap_or(1.0))) as u32 / c.n_head()?;
        Ok(Some(n.into()))
    }),
    // 0 tells Phi 4 from models with windows.
    key("attention.sliding_window", |c| Ok(Some(c.u32(&["sliding_window"])?.unwrap_or(0).into()))),
];

/// The factor of attention that longrope asks for: that of the lengths of contexts.
fn long_scale(c: &Config) -> Result<Option<f32>, ConfigError> {
    if !matches!(rope_type(c), Some("longrope" | "su")) {
        return Ok(None);
    }
    let trained = f64::from(c.need(&["original_max_position_embeddings"])?);
    Ok(Some(magnitude(f64::from(c.need(&["max_position_embeddings"])?) / trained, trained)))
}

/// The factor of attention for a context that is `scale` times as long as `trained` tokens.
fn magnitude(scale: f64, trained: f64) -> f32 {
    if scale > 1.0 { (1.0 + scale.ln() / trained.ln()).sqrt() as f32 } else { 1.0 }
}

/// The configuration asks for no other factor of attention than the one that is computed.
fn usual_long_scale(c: &Config) -> Result<(), ConfigError> {
    let Some(expected) = long_scale(c)? else { return Ok(()) };
    let trained = f64::from(c.need(&["original_max_position_embeddings"])?);
    let of_scale = c.rope_f32(&["factor"])?.map(|scale| magnitude(scale.into(), trained));
    let found = c.rope_f32(&["attention_factor"])?.or(of_scale);
    c.refuse_unless(found.is_none_or(|x| (x - expected).abs() <= 1e-6 * expected), || {
        format!("longrope with an attention factor of {found:?} instead of {expected}")
    })
}

const COHERE2: &[Key] = &[
    key("logit_scale", f32_of!("logit_scale")),
    key("rope.dimension_count", |c| {
        let part = c.f32(&["rotary_pct"])?.unwrap_or(1.0);
        Ok(Some(((f64::from(part) * f64::from(c.n_embd()? / c.n_head()?)) as u32).into()))
    }),
    key("rope.scaling.type", |_| Ok(Some("none".into()))),
];

pub(in crate::hf) const CLASSES: &[HfArch] = &[
    HfArch::new("LlamaForCausalLM", "llama", LLAMA_KEYS, &[NORMS_BEFORE, ATTENTION_PAIRS, MLP])
        .defaults(r#"{"rms_norm_eps": 1e-6}"#)
        .check(plain)
        .proof(Proof::Tested),
    HfArch::new("MistralForCausalLM", "llama", LLAMA_KEYS, &[NORMS_BEFORE, ATTENTION_PAIRS, MLP])
        .defaults(r#"{"rms_norm_eps": 1e-6, "sliding_window": 4096}"#)
        .check(plain)
        .proof(Proof::Like("LlamaForCausalLM")),
    HfArch::new("MixtralForCausalLM", "llama", LLAMA_KEYS, &[NORMS_BEFORE, ATTENTION_PAIRS, MIXTRAL])
        .defaults(r#"{"num_experts_per_tok": 2, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0}"#)
        .check(plain)
        .proof(Proof::Logits),
    HfArch::new("SmolLM3ForCausalLM", "smollm3", LLAMA_KEYS, &[NORMS_BEFORE, ATTENTION_PAIRS, MLP])
        .defaults(r#"{"rms_norm_eps": 1e-6, "rope_theta": 2000000.0, "use_sliding_window": false}"#)
        .check(every_fourth_without_rope)
        .proof(Proof::Tested),
    HfArch::new("Qwen2ForCausalLM", "qwen2", QWEN2_KEYS, &[NORMS_BEFORE, ATTENTION, MLP])
        .defaults(r#"{"rms_norm_eps": 1e-6, "use_sliding_window": false}"#)
        .check(plain)
        .proof(Proof::Tested),
    HfArch::new("Qwen3ForCausalLM", "qwen3", QWEN2_KEYS, &[NORMS_BEFORE, ATTENTION, QK_NORMS, MLP])
        .defaults(r#"{"head_dim": 128, "rms_norm_eps": 1e-6, "use_sliding_window": false}"#)
        .check(plain)
        .proof(Proof::Tested),
    HfArch::new(
        "Qwen3MoeForCausalLM",
        "qwen3moe",
        &[SIZES, KV_HEADS, ROPE, NORMS, EXPERTS, HEAD_DIM, EXPERT_SIZE],
        &[NORMS_BEFORE, ATTENTION, QK_NORMS, EXPERT_MLPS],
    )
    .defaults(r#"{"num_experts_per_tok": 8, "rms_norm_eps": 1e-6, "use_sliding_window": false}"#)
    .check(|c| {
        plain(c)?;
        experts_everywhere(c)?;
        c.refuse_unless(c.flag("norm_topk_prob")?, || "norm_topk_prob false".into())
    })
    .proof(Proof::Tested),
    HfArch::new("Olmo2ForCausalLM", "olmo2", QWEN2_KEYS, &[ATTENTION, QK_NORMS, NORMS_AFTER, MLP])
        .defaults(r#"{"rms_norm_eps": 1e-5}"#)
        .check(plain)
        .proof(Proof::Tested),
    HfArch::new(
        "Glm4ForCausalLM",
        "glm4",
        &[SIZES, KV_HEADS, ROPE, NORMS, HEAD_DIM, ROPE_PART],
        &[NORMS_AROUND, ATTENTION, FUSED_MLP],
    )
    .defaults(r#"{"partial_rotary_factor": 0.5, "head_dim": 128, "rms_norm_eps": 1.5625e-7}"#)
    .check(plain)
    .proof(Proof::Tested),
    HfArch::new(
        "Phi3ForCausalLM",
        "phi3",
        &[SIZES, KV_HEADS, ROPE, NORMS, PHI3],
        &[NORMS_BEFORE, FUSED_ATTENTION, FUSED_MLP],
    )
    .defaults(r#"{"rms_norm_eps": 1e-5}"#)
    .check(|c| {
        activation(c, &["silu"])?;
        usual_long_scale(c)
    })
    .proof(Proof::Tested),
    HfArch::new(
        "Cohere2ForCausalLM",
        "cohere2",
        &[SIZES, KV_HEADS, ROPE, NORMS, HEAD_DIM, WINDOW, VOCABULARY, COHERE2],
        &[NORM_SHARED, ATTENTION, MLP],
    )
    .defaults(
        r#"{"tie_word_embeddings": true, "layer_norm_eps": 1e-5, "logit_scale": 0.0625,
                "sliding_window": 4096}"#,
    )
    .check(|c| {
        activation(c, &["silu"])?;
        let scaling = rope_type(c);
        let is_plain = matches!(scaling, None | Some("default"));
        c.refuse_unless(is_plain, || format!("RoPE scaling of type {scaling:?}"))?;
        window_pattern(c, 4)
    })
    .proof(Proof::Tested),
];

/// Every fourth layer has no RoPE.
fn every_fourth_without_rope(c: &Config) -> Result<(), ConfigError> {
    plain(c)?;
    let interval = c.u32(&["no_rope_layer_interval"])?.unwrap_or(4);
    let layers = c.list("no_rope_layers")?;
    let fits = |(i, v): (u32, &Value)| {
        whole("no_rope_layers", v).is_ok_and(|turns| turns == u32::from((i + 1) % 4 != 0))
    };
    let holds = layers.map_or(interval == 4, |list| (0..).zip(list).all(fits));
    c.refuse_unless(holds, || "layers without RoPE other than every fourth".into())
}
