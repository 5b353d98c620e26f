//! The ids of 10,000 generated texts in each of some vocabularies, compared with those of `tokenizers` and
//! `sentencepiece` (`tokenizers/make.py`).

mod common;

use std::fmt::Write;
use std::path::Path;

use chaski_checkpoint::{PreTokenizer, TokenizerFiles, TokenizerKeys, TokenizerOptions};
use chaski_text::{AddSpecial, ParseSpecial, Tokenizer};
use common::{json, say, tokenizer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const N_TEXT: u64 = 10_000;
const N_BLOCK: u64 = 100;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tokenizers")
}

/// The text with this number: some of the pieces, drawn by xorshift64* as `make.py` does.
fn text(pieces: &[&str], index: u64) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(index + 1);
    let mut below = |n: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    };
    (0..1 + below(16)).map(|_| pieces[below(pieces.len())]).collect()
}

/// The first digits of a hash of the ids of each hundred texts.
fn hashes(tokenizer: &Tokenizer, texts: impl Fn(u64) -> String) -> Vec<String> {
    let ids = |index| tokenizer.encode(&texts(index), AddSpecial::Yes, ParseSpecial::Yes).unwrap();
    let block = |start: u64| {
        let mut lines = String::new();
        (start..start + N_BLOCK).for_each(|index| writeln!(lines, "{}", json!(ids(index))).unwrap());
        Sha256::digest(lines)[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    (0..N_TEXT).step_by(N_BLOCK as usize).map(block).collect()
}

/// The keys of a case: a `tokenizer.json` of its parts, or a `tokenizer.model`.
fn keys(case: &Value) -> TokenizerKeys {
    let model = case["model"].as_str().unwrap();
    let bytes = std::fs::read(folder().join(model)).unwrap();
    let mut files = TokenizerFiles::new();
    if model.ends_with(".model") {
        files.insert("tokenizer.model", bytes).unwrap();
        files.insert("tokenizer_config.json", br#"{"add_bos_token": false}"#.to_vec()).unwrap();
    } else {
        let mut file = case["parts"].clone();
        file["model"] = serde_json::from_slice(&bytes).unwrap();
        file["model"]["ignore_merges"] = case["ignore_merges"].clone();
        let added = case["added"].as_array().unwrap();
        let token =
            |token: &Value| json!({"id": token[0], "content": token[1], "special": token[1] != "<think>"});
        file["added_tokens"] = added.iter().map(token).collect();
        files.insert("tokenizer.json", file.to_string().into_bytes()).unwrap();
    }
    TokenizerKeys::read(&files, TokenizerOptions::default()).unwrap()
}

#[test]
fn ids_are_those_of_the_reference() {
    let golden = json(&folder().join("cases.json"));
    let pieces: Vec<&str> =
        golden["pieces"].as_array().unwrap().iter().map(|piece| piece.as_str().unwrap()).collect();
    for case in golden["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let keys = keys(case);
        assert_eq!(keys.notes, [""; 0], "{name}");
        match (&keys.pre, case["rule"].as_str()) {
            (PreTokenizer::SameExpressions { name: found, .. }, rule) => {
                assert_eq!(Some(*found), rule, "{name}")
            }
            (PreTokenizer::NotNeeded | PreTokenizer::Expressions(_), rule) => {
                assert_eq!(rule, None, "{name}")
            }
            other => panic!("{name}: {other:?}"),
        }
        let plain = |index| {
            let text = text(&pieces, index);
            match name {
                "sentencepiece" => text.replace("<|", "<").replace("<think>", "think"),
                _ => text,
            }
        };
        let found = hashes(&tokenizer(&keys), plain);
        let expected: Vec<&str> = case["ids"].as_str().unwrap().split(' ').collect();
        assert_eq!(found.len(), expected.len());
        let wrong: Vec<usize> = (0..found.len()).filter(|&block| found[block] != expected[block]).collect();
        assert!(
            wrong.is_empty(),
            "{name}: ids differ in {} of {} blocks: {wrong:?}",
            wrong.len(),
            found.len()
        );
        say(&format!("{name}: {N_TEXT} texts"));
    }
}
