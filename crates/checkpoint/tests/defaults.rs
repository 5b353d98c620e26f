//! Keys that config.json leaves out: classes have the defaults of transformers (fixtures/defaults).

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use chaski_checkpoint::hf::{HF_ARCHS, OpenOptions, open};
use ggml_format::{ByteSource, Gguf};
use serde_json::Value;

/// Removes a key, also from the parameters of RoPE.
fn without(config: &Value, key: &str) -> Value {
    let mut config = config.clone();
    config.as_object_mut().unwrap().shift_remove(key);
    if let Some(rope) = config.get_mut("rope_parameters").and_then(Value::as_object_mut) {
        rope.shift_remove(key);
        rope.values_mut().filter_map(Value::as_object_mut).for_each(|rope| drop(rope.shift_remove(key)));
    }
    config
}

/// The file of a configuration, or its error.
fn file(config: &Value, weights: &[u8]) -> Result<Vec<u8>, String> {
    let opened = pollster::block_on(open(common::made(config, weights.to_vec()), &OpenOptions::default()));
    let source = opened.map_err(|e| common::chain(&e))?.source;
    let mut bytes = vec![0; source.len() as usize];
    pollster::block_on(source.read_at(0, &mut bytes)).map_err(|e| common::chain(&e))?;
    Ok(bytes)
}

/// Small checkpoints: those of fixtures/classes and of fixtures/weights.
fn checkpoints() -> Vec<(Value, Vec<u8>)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(common::classes()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let (config, tensors) = common::class(&path);
            out.push((config, common::safetensors(&tensors)));
        }
    }
    for entry in std::fs::read_dir(common::weights("checkpoints")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let weights = common::read(&path.join("model.safetensors"));
            out.push((common::json(&path.join("config.json")), weights));
        }
    }
    out
}

/// Class and key of defaults that the small checkpoints do not have, and the part of the error that tells the value.
const REFUSED: &[(&str, &str, &str)] = &[
    ("DeepseekV2ForCausalLM", "first_k_dense_replace", "`model.layers.0.mlp.gate.weight`"),
    ("DeepseekV3ForCausalLM", "first_k_dense_replace", "`model.layers.1.mlp.gate_proj.weight`"),
    ("Exaone4ForCausalLM", "sliding_window", "sliding_window Some(4096)"),
    ("Gemma2ForCausalLM", "head_dim", "where heads have 256 channels"),
    ("Gemma2ForCausalLM", "query_pre_attn_scalar", "query_pre_attn_scalar Some(256.0)"),
    ("Gemma3ForCausalLM", "head_dim", "where heads have 256 channels"),
    ("Gemma3ForCausalLM", "query_pre_attn_scalar", "query_pre_attn_scalar Some(256.0)"),
    ("MistralForCausalLM", "sliding_window", "sliding_window Some(4096)"),
    ("Qwen3MoeForCausalLM", "norm_topk_prob", "norm_topk_prob false"),
];

fn is_refusal(class: &str, key: &str, message: &str) -> bool {
    REFUSED.iter().any(|row| (row.0, row.1) == (class, key) && message.contains(row.2))
}

#[test]
fn keys_that_are_left_out_have_the_values_of_transformers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/defaults/transformers.json");
    let defaults = common::json(&path);
    let (mut wrong, mut refused, mut seen) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (config, weights) in checkpoints() {
        let class = config["architectures"][0].as_str().unwrap();
        seen.insert(class.to_owned());
        for (key, value) in defaults[class].as_object().unwrap() {
            let left_out = without(&config, key);
            let mut stated = left_out.clone();
            stated[key] = value.clone();
            match (file(&left_out, &weights), file(&stated, &weights)) {
                (Ok(found), Ok(expected)) if found == expected => {}
                (Err(found), Err(expected)) if found == expected && is_refusal(class, key, &found) => {
                    refused.insert((class.to_owned(), key.clone()));
                }
                (found, expected) => {
                    let (found, expected) = (found.err(), expected.err());
                    wrong.push(format!("{class}: {key} = {value}: {found:?}, stated {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Those of golden checkpoints are seen where these are.
    let is_seen = |class: &&str| seen.contains(*class);
    let expected = REFUSED.iter().filter(|row| is_seen(&row.0));
    let expected: BTreeSet<_> = expected.map(|row| (row.0.to_owned(), row.1.to_owned())).collect();
    assert_eq!(refused, expected);
    // Those of fixtures/classes, which are always there.
    assert!(seen.len() >= 18, "{}", seen.len());
    for arch in HF_ARCHS.iter().copied().flatten() {
        // The configuration of Qwen 3.5 with pictures has no class of its own in the list.
        let is_known = defaults.get(arch.class).is_some() || arch.class == "Qwen3_5ForConditionalGeneration";
        assert!(is_known, "{}: make fixtures/defaults/transformers.json again", arch.class);
    }
}

/// A key of the file that a checkpoint of fixtures/classes becomes with changes of its configuration.
fn key_of(name: &str, changes: &[(&str, Value)], key: &str) -> Option<f32> {
    let (mut config, tensors) = common::class(&common::classes().join(name));
    for (key, value) in changes {
        config = without(&config, key);
        if !value.is_null() {
            config[*key] = value.clone();
        }
    }
    let bytes = file(&config, &common::safetensors(&tensors)).unwrap();
    let n_byte = bytes.len() as u64;
    let gguf = Gguf::parse(bytes.into(), n_byte).unwrap();
    match gguf.get(key)? {
        ggml_format::Value::F32(x) => Some(x),
        ggml_format::Value::U32(n) => Some(n as f32),
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_have_the_values_of_the_configuration() {
    let key = "nemotron.attention.layer_norm_epsilon";
    assert_eq!(key_of("nemotron.json", &[("norm_eps", 0.125.into())], key), Some(0.125));
    // Heads of 8 channels in StableLM and of 16 in Nemotron.
    let part = "partial_rotary_factor";
    let cases =
        [("stablelm.json", "rope_pct", "stablelm", 4.0), ("nemotron.json", "rope_percent", "nemotron", 8.0)];
    for (name, spelling, arch, n) in cases {
        let key = format!("{arch}.rope.dimension_count");
        assert_eq!(key_of(name, &[(part, Value::Null), (spelling, 0.5.into())], &key), Some(n));
        assert_eq!(key_of(name, &[(spelling, 1.0.into()), (part, 0.5.into())], &key), Some(n));
    }
}

/// Mistral without the key has a window, and with null none.
#[test]
fn a_window_that_is_null_is_none() {
    let (config, tensors) = common::class(&common::classes().join("mistral.json"));
    let weights = common::safetensors(&tensors);
    assert!(config["sliding_window"].is_null() && file(&config, &weights).is_ok());
    let error = file(&without(&config, "sliding_window"), &weights).unwrap_err();
    assert!(error.contains("sliding_window Some(4096)"), "{error}");
}
