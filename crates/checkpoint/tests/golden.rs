//! Checkpoints of all classes against the files that llama.cpp's converter makes of them: keys, and names, types,
//! shapes and sha256 of all tensors.

mod common;

use std::path::Path;

use chaski_checkpoint::Types;
use chaski_checkpoint::hf::{HF_ARCHS, HfArch, OpenOptions, Proof, open};
use ggml_format::{ByteSource, FileType, Gguf, Value};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

/// A value as the golden files have it: numbers of f32 as the nearest f64, long arrays as count and hash.
fn as_json(value: Value<'_>) -> Json {
    match value {
        Value::U32(n) => json!(n),
        Value::I32(n) => json!(n),
        Value::F32(x) => json!(f64::from(x)),
        Value::Bool(b) => json!(b),
        Value::Str(s) => json!(s),
        Value::Array(list) => {
            let list: Vec<Json> = list.iter().map(as_json).collect();
            if list.len() <= 16 {
                return list.into();
            }
            let text = serde_json::to_string(&list).unwrap();
            json!({"n": list.len(), "sha256": hex(text.as_bytes())})
        }
        other => panic!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// True if the hash is that of these values, each rounded to a neighbour or not: ours are rounded correctly, and
/// torch's exponential function is exact to one unit in the last place.
fn is_one_step_from(data: &[u8], hash: &str) -> bool {
    let bits: Vec<u32> = data.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b)).collect();
    assert!(bits.len() <= 8);
    (0..3u32.pow(bits.len() as u32)).any(|choice| {
        let step = |(i, bits): (usize, &u32)| (bits + choice / 3u32.pow(i as u32) % 3 - 1).to_le_bytes();
        hex(&bits.iter().enumerate().flat_map(step).collect::<Vec<u8>>()) == hash
    })
}

/// Opens a checkpoint and compares; lists what differs.
fn differences(weights: &Path, name: &str) -> Vec<String> {
    let options = OpenOptions { types: Types::Mix(FileType::F32), ..OpenOptions::default() };
    let opened =
        match pollster::block_on(open(common::folder(&weights.join("checkpoints").join(name)), &options)) {
            Ok(opened) => opened,
            Err(e) => {
                return vec![format!("{name}: {}", common::chain(&e))];
            }
        };
    let source = opened.source;
    let mut bytes = vec![0; source.len() as usize];
    pollster::block_on(source.read_at(0, &mut bytes)).unwrap();
    let gguf = Gguf::parse(bytes.clone().into(), bytes.len() as u64).unwrap();
    let expected = common::json(&weights.join("gguf").join(format!("{name}.f32.json")));
    let mut wrong = Vec::new();
    let is_compared = |key: &str| {
        key == "general.architecture" || !key.starts_with("general.") && !key.starts_with("tokenizer.")
    };
    for (key, value) in expected["kv"].as_object().unwrap().iter().filter(|(key, _)| is_compared(key)) {
        let found = gguf.get(key).map(as_json);
        if found.as_ref() != Some(&value["value"]) {
            wrong.push(format!("{name}: key {key}: expected {}, found {found:?}", value["value"]));
        }
    }
    for (key, value) in gguf.iter().filter(|(key, _)| is_compared(key)) {
        if expected["kv"].get(key).is_none() {
            wrong.push(format!("{name}: key {key}: expected none, found {value:?}"));
        }
    }
    let tensors = expected["tensors"].as_array().unwrap();
    for t in tensors {
        let tensor = t["name"].as_str().unwrap();
        let Some(info) = gguf.tensor(tensor) else {
            wrong.push(format!("{name}: tensor {tensor}: not found"));
            continue;
        };
        let data = &bytes[info.offset as usize..][..info.n_byte as usize];
        let ty = info.ty.name().to_uppercase();
        let found = json!({"name": tensor, "shape": info.ne[..info.n_dims as usize], "type": ty, "sha256": hex(data)});
        let is_rounded = tensor.ends_with("ssm_a") && is_one_step_from(data, t["sha256"].as_str().unwrap());
        if found != *t && !is_rounded {
            wrong.push(format!("{name}: expected {t}, found {found}"));
        }
    }
    if gguf.tensors().len() != tensors.len() {
        wrong.push(format!("{name}: expected {} tensors, found {}", tensors.len(), gguf.tensors().len()));
    }
    wrong
}

#[test]
fn files_are_those_of_the_converter() {
    let weights = common::weights("");
    let index = common::json(&weights.join("checkpoints/index.json"));
    let names: Vec<&String> = index.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 28);
    let wrong: Vec<String> = names.iter().flat_map(|name| differences(&weights, name)).collect();
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn proofs_of_classes_are_checkpoints() {
    let weights = common::weights("");
    let index = common::json(&weights.join("checkpoints/index.json"));
    let models: Vec<&str> =
        index.as_object().unwrap().values().map(|v| v["model"].as_str().unwrap()).collect();
    for arch in HF_ARCHS.iter().copied().flatten() {
        let is_tested = models.contains(&arch.class);
        match arch.proof {
            Proof::Tested => assert!(is_tested, "{}", arch.class),
            Proof::Like(other) => assert!(models.contains(&other), "{}", arch.class),
            // The tests of whole models compare these.
            Proof::Logits | Proof::None => assert!(!is_tested, "{}", arch.class),
        }
    }
}

#[test]
fn the_table_of_the_documentation_is_that_of_classes() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checkpoints.md");
    let page = String::from_utf8(common::read(&page)).unwrap();
    let row = |arch: &HfArch| {
        let proof = match arch.proof {
            Proof::Tested => "tested".to_owned(),
            Proof::Logits => "logits".to_owned(),
            Proof::Like(other) => format!("like {other}"),
            Proof::None => "none".to_owned(),
        };
        format!("| {} | {} | {proof} |\n", arch.class, arch.arch)
    };
    let expected: String = HF_ARCHS.iter().copied().flatten().map(row).collect();
    let table = page
        .split("| class | family | proof |\n| --- | --- | --- |\n")
        .nth(1)
        .expect("the page has the table");
    let found: String =
        table.lines().take_while(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    assert!(found == expected, "docs/checkpoints.md: the table must be\n{expected}");
}
