//! Classes of transformers: logits of small checkpoints whose weights are drawn from the names of their tensors
//! (fixtures/classes/make.py), on the CPU against those of transformers.

use std::collections::BTreeSet;

use chaski::KvType;
use chaski::steps::Runner;
use chaski_checkpoint::hf::{HF_ARCHS, OpenOptions, Proof};
use chaski_checkpoint::{Folder, Types, open};
use chaski_models::{Model, RunnerConfig, Target};
use ggml_format::{FileType, MemorySource, SourceError};
use serde_json::{Value, json};

use crate::common::{Failures, Timed, block_on, chain, fixture, nmse, read_json, say};

/// Relative difference: only sums are in another order.
const SUMS: f64 = 1e-5;

/// The same where GELU rounds its inputs to f16, or is an approximation.
const GELU: f64 = 5e-4;

/// A tokenizer of one token.
const TOKENIZER: &str = r#"{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model": {"vocab": {"a": 0}, "merges": ["a a"]}}"#;

/// Numbers from -1 to 1: FNV-1a of the name begins xorshift64*.
fn draw(name: &str) -> impl Iterator<Item = f64> {
    let fnv = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    let mut state = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, fnv);
    std::iter::repeat_with(move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40) as f64 / f64::from(1 << 23) - 1.0
    })
}

/// The values of a tensor in bf16.
fn weight(name: &str, shape: &[u64]) -> Vec<u8> {
    let n: u64 = shape.iter().product();
    let is_one = name.contains("norm") && name.ends_with(".weight") || name.ends_with(".D");
    let of = |x: f64| match shape {
        [] | [_] => f64::from(u8::from(is_one)) + 0.25 * x,
        _ if name.ends_with("A_log") => 1.0 + x,
        _ if name.contains("embed") => 1.5 * x,
        [.., n_col] => 2.0 / (*n_col as f64).sqrt() * x,
    };
    let bf16 = |x: f64| {
        let bits = (of(x) as f32).to_bits();
        ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16
    };
    draw(name).take(n as usize).flat_map(|x| bf16(x).to_le_bytes()).collect()
}

/// A file of safetensors.
fn safetensors(tensors: &Value) -> Vec<u8> {
    let (mut header, mut data) = (json!({}), Vec::new());
    for (name, shape) in tensors.as_object().unwrap() {
        let sizes: Vec<u64> = shape.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let start = data.len();
        data.extend(weight(name, &sizes));
        header[name] = json!({"dtype": "BF16", "shape": shape, "data_offsets": [start, data.len()]});
    }
    let header = header.to_string().into_bytes();
    [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()
}

/// Logits of the last tokens, as many as the case has.
fn logits(name: &str, case: &Value) -> Result<Vec<f32>, String> {
    let files = [
        ("config.json", case["config"].to_string().into_bytes()),
        ("model.safetensors", safetensors(&case["tensors"])),
        ("tokenizer.json", TOKENIZER.as_bytes().to_vec()),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), MemorySource::new(name, bytes)));
    let options = OpenOptions { types: Types::Mix(FileType::F32), ..OpenOptions::default() };
    let opened = block_on(open(Folder::new(name, files), &options)).map_err(|e| chain(&e))?;
    let none =
        |name: &str| Err(SourceError::Other { name: name.to_owned(), source: "a folder is one file".into() });
    let model = block_on(Model::open(opened.source, none)).map_err(|e| chain(&e))?;
    let config = RunnerConfig { n_ctx: 64, kv: KvType::F32, ..RunnerConfig::default() };
    let mut runner = block_on(Runner::load(&model, &Target::Cpu, &config, |_| {})).map_err(|e| chain(&e))?;
    let tokens: Vec<u32> =
        case["tokens"].as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect();
    let all = block_on(runner.eval_all(&tokens, tokens.len())).map_err(|e| chain(&e))?;
    let n = case["logits"].as_array().unwrap().len();
    Ok(all[all.len() / tokens.len() * (tokens.len() - n)..].to_vec())
}

#[test]
fn logits_of_classes_match_those_of_transformers() {
    let _t = Timed::new("classes of transformers");
    let mut failures = Failures::default();
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(fixture("classes")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let case = read_json(&path);
        seen.insert(case["config"]["architectures"][0].as_str().unwrap().to_owned());
        let rows = case["logits"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
        let expected: Vec<f32> = rows.map(|x| x.as_f64().unwrap() as f32).collect();
        let limit = if matches!(&*name, "starcoder2" | "phi" | "gptneox") { GELU } else { SUMS };
        match logits(&name, &case) {
            Ok(found) => {
                let e = nmse(&found, &expected).sqrt();
                say(format!("{name:20} {e:.1e}"));
                failures.check(e <= limit, || format!("{name}: {e:.2e} > {limit:.0e}"));
            }
            Err(e) => failures.check(false, || format!("{name}: {e}")),
        }
    }
    for arch in HF_ARCHS.iter().copied().flatten().filter(|arch| arch.proof == Proof::Logits) {
        failures.check(seen.contains(arch.class), || format!("{}: no checkpoint here proves it", arch.class));
    }
    failures.conclude();
}
