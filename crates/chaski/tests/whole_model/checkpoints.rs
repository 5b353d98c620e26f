//! Folders of Hugging Face: logits on the CPU against those of transformers.

use std::path::Path;

use chaski::source::folder::{OpenOptions, Types};
use chaski::steps::Runner;
use chaski::{KvType, Source};
use chaski_models::{RunnerConfig, Target};
use ggml_format::FileType;
use serde_json::Value;

use crate::common::{Failures, Timed, block_on, chain, fixture, nmse, read, read_json, say};

/// Relative difference: only sums are in another order.
const SUMS: f64 = 1e-5;

/// The same where GELU rounds its inputs to f16.
const GELU: f64 = 3e-4;

/// The same with matrices of mxfp4, whose products round their activations.
const MXFP4: f64 = 1e-4;

fn limit(name: &str) -> f64 {
    match name {
        "gemma" | "gemma2" | "gemma3" => GELU,
        "gpt-oss-mxfp4" => MXFP4,
        _ => SUMS,
    }
}

/// Logits of all tokens of a checkpoint.
fn logits(folder: &Path, types: Types, case: &Value) -> Result<Vec<f32>, String> {
    let tokens: Vec<u32> =
        case["tokens"].as_array().unwrap().iter().map(|t| t.as_u64().unwrap() as u32).collect();
    let options = OpenOptions { types, ..OpenOptions::default() };
    let model =
        block_on(Source::Folder { path: folder.to_owned(), options }.open()).map_err(|e| chain(&e))?;
    let config = RunnerConfig { n_ctx: 64, kv: KvType::F32, ..RunnerConfig::default() };
    let mut runner = block_on(Runner::load(&model, &Target::Cpu, &config, |_| {})).map_err(|e| chain(&e))?;
    block_on(runner.eval_all(&tokens, tokens.len())).map_err(|e| chain(&e))
}

fn expected(folder: &Path) -> Vec<f32> {
    read(&folder.join("logits.f32")).as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

#[test]
fn logits_of_checkpoints_match_those_of_transformers() {
    let _t = Timed::new("checkpoints");
    let weights = fixture("weights/checkpoints");
    let index = read_json(&weights.join("index.json"));
    let mut failures = Failures::default();
    for (name, case) in index.as_object().unwrap() {
        let folder = weights.join(name);
        let (expected, limit) = (expected(&folder), limit(name));
        match logits(&folder, Types::Mix(FileType::F32), case) {
            Ok(found) => {
                let e = nmse(&found, &expected).sqrt();
                say(format!("{name:20} {e:.1e}"));
                failures.check(e <= limit, || format!("{name}: {e:.2e} > {limit:.0e}"));
            }
            Err(e) => failures.check(false, || format!("{name}: {e}")),
        }
    }
    failures.conclude();
}

/// The types of the checkpoint: products round activations to 16 bits, and 8-bit floats become q8_0.
#[test]
fn logits_of_checkpoints_in_their_own_types_are_near() {
    let _t = Timed::new("checkpoints, own types");
    let weights = fixture("weights/checkpoints");
    let index = read_json(&weights.join("index.json"));
    let mut failures = Failures::default();
    for name in ["llama-gqa", "llama-ct-int4", "llama-fp8", "gpt-oss-mxfp4", "falcon-h1"] {
        let folder = weights.join(name);
        match logits(&folder, Types::Auto, &index[name]) {
            Ok(found) => {
                let e = nmse(&found, &expected(&folder)).sqrt();
                say(format!("{name:20} {e:.1e}, own types"));
                failures.check(e <= 2e-2, || format!("{name}: {e:.2e}"));
            }
            Err(e) => failures.check(false, || format!("{name}: {e}")),
        }
    }
    failures.conclude();
}
