//! Tokenizer keys and token ids of small checkpoints, compared with llama.cpp's converter, `tokenizers` and
//! `sentencepiece`.

mod common;

use chaski_checkpoint::{PreTokenizer, TokenizerKeys, TokenizerOptions};
use chaski_text::{AddSpecial, ParseSpecial};
use common::{data, json, say, tokenizer, tokenizer_files};
use ggml_format::{OwnedValue, Value as Ggml};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A metadata value as the golden files have it: long arrays as number and hash of their compact JSON.
fn golden_form(value: &OwnedValue) -> Value {
    let scalar = |value: Ggml<'_>| match value {
        Ggml::Str(text) => Value::from(text),
        Ggml::Bool(flag) => Value::from(flag),
        Ggml::F32(number) => Value::from(f64::from(number)),
        other => Value::from(other.to::<i64>().unwrap()),
    };
    match value.as_value() {
        Ggml::Array(array) if array.len() > 16 => {
            let list: Vec<Value> = array.iter().map(scalar).collect();
            let hash = Sha256::digest(serde_json::to_vec(&list).unwrap());
            let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            serde_json::json!({"n": list.len(), "sha256": hex})
        }
        Ggml::Array(array) => array.iter().map(scalar).collect(),
        other => scalar(other),
    }
}

/// Keys that the converter sets by class, with the reason why ours differ.
const BY_CLASS: &[(&str, &str, &str)] = &[
    ("gemma", "tokenizer.ggml.eot_token_id", "the number in Gemma's own vocabulary, whatever the file has"),
    ("glm4", "tokenizer.ggml.eot_token_id", "<|user|>, which is EOS there already"),
    ("glm4", "tokenizer.ggml.unknown_token_id", "<|endoftext|>, which is not used"),
];

/// Vocabularies with user-defined pieces, which the converter makes normal ones.
const USER_DEFINED: &[&str] = &["gemma", "gemma2", "gemma3"];

#[test]
fn keys_are_those_of_the_converter() {
    let (Some(checkpoints), Some(gguf)) = (data("weights/checkpoints"), data("weights/gguf")) else { return };
    let index = json(&checkpoints.join("index.json"));
    let mut n_checkpoint = 0;
    for entry in std::fs::read_dir(&gguf).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let name = file.strip_suffix(".f32.json").unwrap();
        let of = index[name]["of"].as_str().unwrap_or(name);
        let options = TokenizerOptions { pre: index[of]["pre"].as_str(), ..TokenizerOptions::default() };
        let keys = TokenizerKeys::read(&tokenizer_files(&checkpoints.join(name)), options).unwrap();
        assert_eq!(keys.notes, [""; 0], "{name}");
        let mut expected = json(&path)["kv"].as_object().unwrap().clone();
        expected.retain(|key, _| {
            let is_ours = !BY_CLASS.iter().any(|row| (row.0, row.1) == (name, key));
            key.starts_with("tokenizer.") && is_ours
        });
        for (key, value) in &keys.entries {
            let mut value = value.clone();
            if key == "tokenizer.ggml.token_type" && USER_DEFINED.contains(&name) {
                let Ggml::Array(kinds) = value.as_value() else { panic!("{name}") };
                let kinds: Vec<i32> = kinds.to_vec().unwrap();
                value =
                    kinds.into_iter().map(|kind| if kind == 4 { 1 } else { kind }).collect::<Vec<_>>().into();
            }
            let expected = expected.remove(key).unwrap_or_else(|| panic!("{name}: {key} is not expected"));
            assert_eq!(golden_form(&value), expected["value"], "{name}: {key}");
        }
        assert!(expected.is_empty(), "{name}: {:?} are missing", expected.keys());
        n_checkpoint += 1;
    }
    say(&format!("keys of {n_checkpoint} checkpoints"));
    assert!(n_checkpoint >= 28);
}

#[test]
fn rules_are_known_by_their_expressions() {
    let Some(checkpoints) = data("weights/checkpoints") else { return };
    let cases = [("llama-gqa", "dbrx"), ("qwen3", "qwen2"), ("granite", "gpt-2"), ("gpt-oss", "dbrx")];
    for (checkpoint, expected) in cases {
        let files = tokenizer_files(&checkpoints.join(checkpoint));
        let keys = TokenizerKeys::read(&files, TokenizerOptions::default()).unwrap();
        assert_eq!(
            keys.pre,
            PreTokenizer::SameExpressions { name: expected, same_words: true },
            "{checkpoint}"
        );
    }
}

#[test]
fn ids_are_those_of_the_reference() {
    let (Some(checkpoints), Some(tokens)) = (data("weights/checkpoints"), data("weights/tokens.json")) else {
        return;
    };
    for (name, cases) in json(&tokens).as_object().unwrap() {
        let files = tokenizer_files(&checkpoints.join(name));
        let keys = TokenizerKeys::read(&files, TokenizerOptions::default()).unwrap();
        let tokenizer = tokenizer(&keys);
        for case in cases.as_array().unwrap() {
            let (text, expected) = (case[0].as_str().unwrap(), &case[1]);
            let ids = tokenizer.encode(text, AddSpecial::No, ParseSpecial::Yes).unwrap();
            assert_eq!(&Value::from(ids), expected, "{name}: {text:?}");
        }
        say(&format!("{name}: {} texts", cases.as_array().unwrap().len()));
    }
}
