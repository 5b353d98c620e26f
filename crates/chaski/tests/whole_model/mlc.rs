//! Folders of MLC: logits on the CPU against those of transformers on the same weights.

use std::path::Path;

use chaski::KvType;
use chaski::steps::Runner;
use chaski_checkpoint::hf::OpenOptions;
use chaski_checkpoint::{Folder, open};
use chaski_models::{Model, RunnerConfig, Target};
use ggml_format::{MemorySource, SourceError};
use serde_json::Value;

use crate::common::{Failures, Timed, block_on, chain, fixture, nmse, read, read_json, say};

#[path = "../../../checkpoint/tests/common/mlc_folder.rs"]
mod mlc_folder;

/// Relative difference: products of q4_0 round their activations to 16 bits, and 3 bits become q8_0.
fn limit(name: &str) -> f64 {
    if name.ends_with("-q3f16_1") { 3e-2 } else { 2e-4 }
}

/// Logits of all tokens of a folder.
fn logits(weights: &Path, name: &str, case: &Value) -> Result<Vec<f32>, String> {
    let tokens: Vec<u32> =
        case["tokens"].as_array().unwrap().iter().map(|t| t.as_u64().unwrap() as u32).collect();
    let files = mlc_folder::files(weights, name).into_iter();
    let files = files.map(|(name, bytes)| (name.clone(), MemorySource::new(name, bytes)));
    let opened = block_on(open(Folder::new(name, files), &OpenOptions::default())).map_err(|e| chain(&e))?;
    let none =
        |name: &str| Err(SourceError::Other { name: name.to_owned(), source: "a folder is one file".into() });
    let model = block_on(Model::open(opened.source, none)).map_err(|e| chain(&e))?;
    let config = RunnerConfig { n_ctx: 64, kv: KvType::F32, ..RunnerConfig::default() };
    let mut runner = block_on(Runner::load(&model, &Target::Cpu, &config, |_| {})).map_err(|e| chain(&e))?;
    block_on(runner.eval_all(&tokens, tokens.len())).map_err(|e| chain(&e))
}

/// The largest number of each row.
fn choices(logits: &[f32], n_vocab: usize) -> Vec<usize> {
    let largest = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
    logits.chunks(n_vocab).map(largest).collect()
}

#[test]
fn logits_of_mlc_folders_match_those_of_transformers() {
    let _t = Timed::new("folders of MLC");
    let weights = fixture("weights");
    let index = read_json(&weights.join("checkpoints/index.json"));
    let mut failures = Failures::default();
    let mut n_compared = 0;
    for entry in std::fs::read_dir(weights.join("mlc")).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let name = name.into_string().unwrap();
        if !path.is_dir() {
            continue;
        }
        let case = &index[name.rsplit_once('-').unwrap().0];
        let found = match logits(&weights, &name, case) {
            Ok(found) => found,
            Err(e) => {
                failures.check(false, || format!("{name}: {e}"));
                continue;
            }
        };
        failures.check(found.iter().all(|x| x.is_finite()), || format!("{name}: logits are not finite"));
        // Folders without logits are compared by their tensors, in the tests of chaski-checkpoint.
        let golden = path.join("logits.f32");
        if !golden.is_file() {
            continue;
        }
        let expected: Vec<f32> = read(&golden).as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
        let n_vocab = case["shape"][1].as_u64().unwrap() as usize;
        let e = nmse(&found, &expected).sqrt();
        let limit = limit(&name);
        say(format!("{name:20} {e:.1e}"));
        failures.check(e <= limit, || format!("{name}: {e:.2e} > {limit:.0e}"));
        let same = choices(&found, n_vocab) == choices(&expected, n_vocab);
        failures.check(same, || format!("{name}: other tokens have the largest logits"));
        n_compared += 1;
    }
    failures.check(n_compared >= 5, || format!("expected logits of 5 folders, found {n_compared}"));
    failures.conclude();
}
