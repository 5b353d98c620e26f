//! Tokenizer keys and token ids of small checkpoints, compared with llama.cpp's converter, `tokenizers` and
//! `sentencepiece`.

mod common;

use chaski_checkpoint::{PreTokenizer, TokenizerFiles, TokenizerKeys, TokenizerOptions};
use chaski_text::{AddSpecial, ParseSpecial};
use common::{data, read, say, tokenizer, tokenizer_files, weights};
use ggml_format::{Gguf, OwnedValue, Value as Ggml};
use serde_json::{Value, json};
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
            json!({"n": list.len(), "sha256": hex})
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
    let (checkpoints, gguf) = (weights("checkpoints"), weights("gguf"));
    let index = common::json(&checkpoints.join("index.json"));
    let mut n_checkpoint = 0;
    for entry in std::fs::read_dir(&gguf).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let name = file.strip_suffix(".f32.json").unwrap();
        let of = index[name]["of"].as_str().unwrap_or(name);
        let options = TokenizerOptions { pre: index[of]["pre"].as_str(), ..TokenizerOptions::default() };
        let keys = TokenizerKeys::read(&tokenizer_files(&checkpoints.join(name)), options).unwrap();
        assert_eq!(keys.notes, [""; 0], "{name}");
        let mut expected = common::json(&path)["kv"].as_object().unwrap().clone();
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
    let checkpoints = weights("checkpoints");
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
    let (checkpoints, tokens) = (weights("checkpoints"), weights("tokens.json"));
    for (name, cases) in common::json(&tokens).as_object().unwrap() {
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

/// A `tokenizer.json` of a vocabulary in a GGUF file, with these steps.
fn of_gguf(gguf: &Gguf, steps: &Value) -> Vec<u8> {
    let metadata = gguf.metadata();
    let kinds: Vec<i32> = metadata.vec("tokenizer.ggml.token_type").unwrap();
    let tokens: Vec<&str> = metadata.strings("tokenizer.ggml.tokens").unwrap().collect();
    let ids = 0..tokens.len();
    let added: Vec<Value> = ids
        .clone()
        .filter(|&id| matches!(kinds[id], 3 | 4))
        .map(|id| json!({"id": id, "content": tokens[id], "special": kinds[id] == 3}))
        .collect();
    let plain = ids.filter(|&id| !matches!(kinds[id], 3..=5));
    let vocab: serde_json::Map<String, Value> = plain.map(|id| (tokens[id].to_owned(), id.into())).collect();
    let merges: Vec<&str> = metadata.strings("tokenizer.ggml.merges").unwrap().collect();
    let bos = metadata.opt_u32("tokenizer.ggml.bos_token_id").unwrap().map_or("", |id| tokens[id as usize]);
    let template = json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": bos}}, {"Sequence": {"id": "A"}}]});
    let adds_bos = metadata.opt_str("tokenizer.ggml.pre").unwrap() == Some("llama-bpe");
    let file = json!({
        "added_tokens": added, "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "post_processor": if adds_bos { template } else { Value::Null },
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": adds_bos},
    });
    file.to_string().into_bytes()
}

#[test]
fn vocabularies_are_known_by_their_hash_where_expressions_do_not_tell() {
    let Some(folder) = data("vocab") else { return };
    let bytes =
        |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": use_regex});
    let split = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated"});
    let digits = |alone: bool| json!({"type": "Digits", "individual_digits": alone});
    // An expression that matches nothing in the text makes a rule unknown.
    let never = split("\u{10FFFF}");
    let words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let punctuation = json!({"type": "Punctuation", "behavior": "Contiguous"});
    let cases = [
        ("gpt-2", json!([never, bytes(true)])),
        ("starcoder", json!([never, digits(true), bytes(true)])),
        ("qwen2", json!([never, split(&words.replace("DIGITS", r"\p{N}")), bytes(false)])),
        ("llama-bpe", json!([never, split(&words.replace("DIGITS", r"\p{N}{1,3}")), bytes(false)])),
        // As its author has it: the last steps see bytes.
        ("falcon", json!([punctuation, bytes(true), digits(false), split("[0-9][0-9][0-9]")])),
    ];
    for (name, steps) in cases {
        let header = read(&folder.join(format!("ggml-vocab-{name}.gguf")));
        let n_byte = header.len() as u64;
        let gguf = Gguf::parse(header.into(), n_byte).unwrap();
        let mut files = TokenizerFiles::new();
        files.insert("tokenizer.json", of_gguf(&gguf, &steps)).unwrap();
        let bos = gguf.metadata().opt_u32("tokenizer.ggml.bos_token_id").unwrap();
        files.insert("config.json", json!({ "bos_token_id": bos }).to_string().into_bytes()).unwrap();
        let keys = TokenizerKeys::read(&files, TokenizerOptions::default()).unwrap();
        assert_eq!(keys.pre, PreTokenizer::KnownVocabulary(name.to_owned()), "{name}");
    }
}

#[test]
fn a_name_of_no_rule_is_refused() {
    let mut files = TokenizerFiles::new();
    files.insert("tokenizer.json", common::TOKENIZER.into()).unwrap();
    let read =
        |pre| TokenizerKeys::read(&files, TokenizerOptions { pre: Some(pre), ..TokenizerOptions::default() });
    assert!(read("qwen2").is_ok());
    let error = read("qwen9").unwrap_err().to_string();
    assert!(error.starts_with("\"qwen9\" is not a pre-tokenizer that is known"), "{error}");
}
