//! Gemma 1 to 3: norms without their 1.

use ggml_format::OwnedValue;

use super::common::{ATTENTION, MLP, TOP_PLUS_ONE, activation, window_pattern};
use crate::hf::class::{HfArch, Proof};
use crate::hf::config::{Config, ConfigError, real};
use crate::hf::keys::*;
use crate::hf::part::plus_one;
use crate::hf::rules::{Rule, module};

const NORMS_BEFORE: &[Rule] = &[
    module("attn_norm", "input_layernorm", plus_one),
    module("ffn_norm", "post_attention_layernorm", plus_one),
];

const NORMS_AROUND: &[Rule] = &[
    module("attn_norm", "input_layernorm", plus_one),
    module("post_attention_norm", "post_attention_layernorm", plus_one),
    module("ffn_norm", "pre_feedforward_layernorm", plus_one),
    module("post_ffw_norm", "post_feedforward_layernorm", plus_one),
];

const QK_NORMS: &[Rule] = &[
    module("attn_q_norm", "self_attn.q_norm", plus_one),
    module("attn_k_norm", "self_attn.k_norm", plus_one),
];

const SOFTCAPS: &[Key] = &[
    key("attn_logit_softcapping", f32_of!("attn_logit_softcapping")),
    key("final_logit_softcapping", f32_of!("final_logit_softcapping")),
];

const GEMMA3: &[Key] = &[
    key("final_logit_softcapping", f32_of!("final_logit_softcapping")),
    key("rope.freq_base_swa", |c| {
        let of_kind = c.rope_of("sliding_attention", &["rope_theta"]).filter(|_| by_kind(c));
        let base = of_kind.or_else(|| c.get(&["rope_local_base_freq"]));
        Ok(base.map(|v| real("rope_local_base_freq", v)).transpose()?.map(OwnedValue::F32))
    }),
    // Only where it is not the family's: every sixth layer without a window.
    key("attention.sliding_window_pattern", |c| {
        let local: Option<Vec<bool>> =
            c.layer_types()?.map(|kinds| kinds.iter().map(|kind| *kind != "full_attention").collect());
        let usual = |local: &[bool]| local.iter().enumerate().all(|(i, &local)| local == ((i + 1) % 6 != 0));
        let stated = c.u32(&["sliding_window_pattern", "_sliding_window_pattern"])?;
        match (local, stated) {
            (Some(local), _) if !usual(&local) => Ok(Some(local.into())),
            (None, Some(period)) if period != 6 => Ok(Some(period.into())),
            _ => Ok(None),
        }
    }),
];

/// True if RoPE has parameters for each kind of layer.
fn by_kind(c: &Config) -> bool {
    c.get(&["rope_parameters"]).is_some_and(|p| p.get("sliding_attention").is_some())
}

/// Values that files leave out.
const GEMMA3_DEFAULTS: &str = r#"{
    "tie_word_embeddings": true, "vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 256, "sliding_window": 4096,
    "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0
}"#;

const GEMMA3_KEYS: &[&[Key]] = &[SIZES, KV_HEADS, ROPE, NORMS, HEAD_DIM, WINDOW, GEMMA3];

pub(in crate::hf) const CLASSES: &[HfArch] = &[
    HfArch::new(
        "GemmaForCausalLM",
        "gemma",
        &[SIZES, KV_HEADS, NORMS, HEAD_DIM],
        &[NORMS_BEFORE, ATTENTION, MLP],
    )
    .top(TOP_PLUS_ONE)
    .defaults(r#"{"tie_word_embeddings": true, "rms_norm_eps": 1e-6, "head_dim": 256}"#)
    .check(|c| {
        usual_base(c)?;
        // Old files say gelu, and were trained with its approximation.
        activation(c, &["gelu", "gelu_pytorch_tanh"])
    })
    .proof(Proof::Tested),
    HfArch::new(
        "Gemma2ForCausalLM",
        "gemma2",
        &[SIZES, KV_HEADS, NORMS, HEAD_DIM, SOFTCAPS, WINDOW],
        &[NORMS_AROUND, ATTENTION, MLP],
    )
    .top(TOP_PLUS_ONE)
    .defaults(
        r#"{"tie_word_embeddings": true, "rms_norm_eps": 1e-6, "head_dim": 256, "query_pre_attn_scalar": 256,
            "sliding_window": 4096, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}"#,
    )
    .check(|c| {
        usual_base(c)?;
        activation(c, &["gelu_pytorch_tanh"])?;
        window_pattern(c, 2)?;
        score_scale(c, 46)
    })
    .proof(Proof::Tested),
    HfArch::new("Gemma3ForCausalLM", "gemma3", GEMMA3_KEYS, &[NORMS_AROUND, ATTENTION, QK_NORMS, MLP])
        .top(TOP_PLUS_ONE)
        .defaults(GEMMA3_DEFAULTS)
        .check(check_gemma3)
        .proof(Proof::Tested),
    HfArch::new(
        "Gemma3ForConditionalGeneration",
        "gemma3",
        GEMMA3_KEYS,
        &[NORMS_AROUND, ATTENTION, QK_NORMS, MLP],
    )
    .top(TOP_PLUS_ONE)
    .defaults(GEMMA3_DEFAULTS)
    .check(check_gemma3)
    .proof(Proof::Like("Gemma3ForCausalLM")),
];

fn check_gemma3(c: &Config) -> Result<(), ConfigError> {
    activation(c, &["gelu_pytorch_tanh"])?;
    let both_ways = c.flag("use_bidirectional_attention")?;
    c.refuse_unless(!both_ways, || "use_bidirectional_attention true".into())?;
    score_scale(c, 62)
}

/// The file has no base of RoPE: it is 10000.
fn usual_base(c: &Config) -> Result<(), ConfigError> {
    let base = c.rope_f32(&["rope_theta"])?;
    c.refuse_unless(
        base.is_none_or(|base| base == 10_000.0) && matches!(rope_type(c), None | Some("default")),
        || format!("RoPE with base {base:?} and scaling {:?}", rope_type(c)),
    )
}

/// Scores are scaled by the channels of a head; in the model of so many layers by those that a head would have.
fn score_scale(c: &Config, n_layer_of_largest: u32) -> Result<(), ConfigError> {
    let even = c.n_embd()? / c.n_head()?;
    let expected = if c.n_layer()? == n_layer_of_largest { even } else { c.head_dim()? };
    let found = c.f32(&["query_pre_attn_scalar"])?;
    c.refuse_unless(found.is_none_or(|x| x == expected as f32), || {
        format!("query_pre_attn_scalar {found:?} where heads have {expected} channels")
    })
}
