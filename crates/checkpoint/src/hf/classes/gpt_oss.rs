//! gpt-oss: experts as one tensor of a layer, gate and input row by row, in bf16 transposed or in mxfp4.

use serde_json::Value;

use super::common::{ATTENTION, activation, window_pattern};
use crate::hf::class::{HfArch, Proof};
use crate::hf::config::{Config, ConfigError};
use crate::hf::keys::*;
use crate::hf::part::{Part, PartError, same};
use crate::hf::rules::{Rule, module, tensor};
use crate::recipe::Strides;

const LAYERS: &[Rule] = &[
    module("attn_norm", "input_layernorm", same),
    module("post_attention_norm", "post_attention_layernorm", same),
    tensor("attn_sinks.weight", "self_attn.sinks", same),
    module("ffn_gate_inp", "mlp.router", same),
    tensor("ffn_gate_exps.weight", "mlp.experts.gate_up_proj", |c, part| every_other(c, part, 0)),
    tensor("ffn_up_exps.weight", "mlp.experts.gate_up_proj", |c, part| every_other(c, part, 1)),
    tensor("ffn_down_exps.weight", "mlp.experts.down_proj", rows),
    tensor("ffn_gate_exps.bias", "mlp.experts.gate_up_proj_bias", |_, part| every_other_value(part, 0)),
    tensor("ffn_up_exps.bias", "mlp.experts.gate_up_proj_bias", |_, part| every_other_value(part, 1)),
    tensor("ffn_down_exps.bias", "mlp.experts.down_proj_bias", same),
];

const EXPERT_SIZE: &[Key] = &[key("expert_feed_forward_length", u32_of!("intermediate_size"))];

pub(in crate::hf) const CLASSES: &[HfArch] = &[HfArch::new(
    "GptOssForCausalLM",
    "gpt-oss",
    &[SIZES, KV_HEADS, ROPE, NORMS, EXPERTS, HEAD_DIM, WINDOW, EXPERT_SIZE],
    &[LAYERS, ATTENTION],
)
.defaults(
    r#"{"head_dim": 64, "num_experts_per_tok": 4, "rms_norm_eps": 1e-5,
            "rope_theta": 150000.0, "sliding_window": 128}"#,
)
.check(check)
.proof(Proof::Tested)];

/// True if experts are stored row by row; otherwise they are transposed.
fn is_mxfp4(c: &Config) -> bool {
    let method = c.get(&["quantization_config"]).and_then(|q| q.get("quant_method"));
    method.and_then(Value::as_str) == Some("mxfp4")
}

/// `[n_expert, rows, columns]`
fn rows(c: &Config, part: Part) -> Result<Part, PartError> {
    let part = part.rank(3)?;
    if is_mxfp4(c) { Ok(part) } else { part.swapped() }
}

/// Every other row of each expert.
fn every_other(c: &Config, part: Part, first: u64) -> Result<Part, PartError> {
    let Part { mut shape, recipe } = part.rank(3)?;
    if is_mxfp4(c) {
        let n = shape[1];
        shape[1] = n / 2;
        let recipe = recipe.rows(Strides::new(first, &[(shape[0], n), (n / 2, 2)]))?;
        return Ok(Part { shape, recipe });
    }
    // Half of the columns are half of the work.
    shape[2] /= 2;
    let recipe = recipe.cols(Strides::new(first, &[(shape[2], 2)]))?;
    Part { shape, recipe }.swapped()
}

fn every_other_value(part: Part, first: u64) -> Result<Part, PartError> {
    let Part { mut shape, recipe } = part.rank(2)?;
    shape[1] /= 2;
    let recipe = recipe.cols(Strides::new(first, &[(shape[1], 2)]))?;
    Ok(Part { shape, recipe })
}

fn check(c: &Config) -> Result<(), ConfigError> {
    activation(c, &["silu"])?;
    window_pattern(c, 2)?;
    let number = |name: &str, expected: f32| {
        let found = c.f32(&[name])?;
        c.refuse_unless(found.is_none_or(|x| x == expected), || format!("{name} {found:?}"))
    };
    number("swiglu_limit", 7.0)?;
    number("swiglu_alpha", 1.702)
}
