//! LoRAs in one step: rows with different scales have the bits that they have beside rows with their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use chaski::embedding::{EmbedOptions, EmbedRequest, Embedding, Pooling, VectorNorm};
use chaski::gguf::MemorySource;
use chaski::gpu::Gpu;
use chaski::kernels::FeatureSet;
use chaski::serve::Request;
use chaski::steps::Runner;
use chaski::{GenerateOptions, KvType, SamplerParams};
use chaski_models::serve::{Driver, Handle, serve};
use chaski_models::{Model, RunnerConfig, Target};

use crate::archs::{Fixture, open};
use crate::common::{Timed, block_on, chain, full, shared_gpu};
use crate::lora::{FIRST, SECOND, attach, targets};
use crate::serve::outcome;
use crate::stages::gpus;
use crate::streaming::{bits, with_experts};

/// Scales of four sequences, two of which have the same.
const SCALES: [[f32; 2]; 4] = [[0.75, 0.0], [0.0, -1.5], [0.75, 0.0], [-0.5, 1.0]];

/// A fixture with LoRAs of all matrices that a name passes; MoE with more experts than a token uses.
fn adapted(f: &Fixture, name: &str, is_target: impl Fn(&str) -> bool) -> Model<MemorySource> {
    let bytes = if name.ends_with("moe") { with_experts(f, 6, 2, None) } else { f.gguf(false, &|_, _| {}) };
    let mut model = open(bytes).expect("a fixture is a model");
    let tensors: BTreeMap<String, Vec<u64>> =
        targets(&model).into_iter().filter(|(name, _)| is_target(name)).collect();
    assert!(!tensors.is_empty(), "{name} has targets");
    let arch = model.arch().name;
    for lora in [FIRST, SECOND] {
        attach(&mut model, lora.gguf(arch, &tensors), 0.0).expect("a LoRA that fits");
    }
    model
}

/// The CPU, devices with kernels for GPUs and for CPUs, two devices, and a device after the CPU.
fn ways() -> Vec<(&'static str, Target)> {
    let of = |set| -> Arc<Gpu> { shared_gpu(set, false) };
    let sg = of(FeatureSet::Sg);
    let mut all = vec![
        ("CPU", Target::Cpu),
        ("subgroups", Target::Gpu(sg.clone())),
        ("alone", Target::Gpu(of(FeatureSet::Alone))),
        ("two devices", Target::Gpus(gpus(2, FeatureSet::Sg))),
        ("after the CPU", Target::AfterCpu(vec![sg])),
    ];
    if full() {
        all.push(("base", Target::Gpu(of(FeatureSet::Base))));
    }
    all
}

fn load(model: &Model<MemorySource>, target: &Target) -> Runner {
    let sizes = RunnerConfig { n_ctx: 64, n_seq: 4, chunk: 32, kv: KvType::F32, ..RunnerConfig::default() };
    let config = RunnerConfig { gpu_layers: Some(1), ..sizes };
    block_on(Runner::load(model, target, &config, |_| {})).unwrap_or_else(|e| panic!("{}", chain(&e)))
}

/// Logits of steps of four sequences with these scales: the ends of prompts beside single tokens, few columns and many,
/// then tokens of single sequences.
fn steps(r: &mut Runner, tokens: &[u32], scales: impl Fn(usize) -> [f32; 2]) -> Vec<Vec<Vec<f32>>> {
    let mut at = [0; 4];
    for seq in 0..4 {
        r.select(seq);
        r.truncate(0);
        r.adapt(&scales(seq)).expect("two scales");
    }
    let mut of_seqs = vec![Vec::new(); 4];
    for lens in [[2, 1, 3, 1], [9, 1, 1, 8], [1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 1], [1, 5, 0, 0]] {
        let mut columns = Vec::new();
        for (seq, n) in lens.into_iter().enumerate() {
            columns.extend(tokens[at[seq]..at[seq] + n].iter().map(|t| (seq, *t)));
            at[seq] += n;
        }
        let rows = block_on(r.eval_columns(&columns)).expect("the columns run");
        let n_vocab = r.n_vocab() as usize;
        for ((seq, _), row) in columns.iter().zip(rows.chunks_exact(n_vocab)) {
            of_seqs[*seq].push(row.to_vec());
        }
    }
    of_seqs
}

/// Embeddings, plain products and the output matrix; products by experts; recurrent layers.
#[test]
fn rows_with_different_lora_scales_have_the_bits_that_they_have_beside_their_own() {
    let _t = Timed::new("LoRAs, rows of a step");
    for name in ["llama-plain", "llama-moe", "lfm2-window"] {
        let f = Fixture::load(name);
        let model = adapted(&f, name, |_| true);
        if name == "llama-plain" {
            let names: Vec<String> = targets(&model).into_keys().collect();
            assert!(["output.weight", "token_embd.weight"].iter().all(|n| names.iter().any(|m| m == n)));
        }
        for (what, target) in ways() {
            let mut r = load(&model, &target);
            let found = steps(&mut r, &f.tokens, |seq| SCALES[seq]);
            for seq in [0, 1, 3] {
                let expected = steps(&mut r, &f.tokens, |_| SCALES[seq]);
                assert!(bits(&found[seq].concat()) == bits(&expected[seq].concat()), "{name}, {what}, {seq}");
            }
            let others = steps(&mut r, &f.tokens, |_| SCALES[0]);
            assert!(others[1] != found[1] && others[3] != found[3], "{name}, {what}: scales matter");
            assert!(others[2] == found[2], "{name}, {what}: equal scales");
        }
    }
}

/// A service that has not begun, so that requests begin in the same step.
fn service(model: &Model<MemorySource>, target: &Target) -> (Handle, Driver<Runner>) {
    serve(load(model, target), model.shared_text().0, 16).expect("a service")
}

fn ask(handle: &Handle, prompt: &[u32], scales: [f32; 2], is_greedy: bool) -> chaski_models::serve::Answer {
    let sampler = match is_greedy {
        true => SamplerParams::greedy(),
        false => SamplerParams { seed: Some(7), ..SamplerParams::default() },
    };
    let lora = Some(scales.to_vec());
    let options = GenerateOptions { sampler, lora, max_tokens: Some(12), ..GenerateOptions::default() };
    handle.generate(Request::new(prompt.to_vec(), options)).expect("a request that fits")
}

/// Requests of four sets of scales, greedy and sampled, share their steps and have the tokens that each has alone.
#[test]
fn requests_with_different_lora_scales_share_steps() {
    let _t = Timed::new("LoRAs, steps of requests");
    for name in ["llama-plain", "llama-moe"] {
        let f = Fixture::load(name);
        let model = adapted(&f, name, |_| true);
        for (what, target) in ways() {
            // Prompts of several lengths; the last begins when the others are answered.
            let prompt = |i: usize| &f.tokens[i..i + 3 + 2 * (i % 3)];
            let alone: Vec<(Vec<u32>, u64)> = (0..4)
                .map(|i| {
                    let (handle, driver) = service(&model, &target);
                    let answer = ask(&handle, prompt(i), SCALES[i], i % 2 == 0);
                    driver.spawn().expect("a thread");
                    let tokens = outcome(answer).tokens;
                    (tokens, handle.load().n_step)
                })
                .collect();
            let (handle, driver) = service(&model, &target);
            let answers: Vec<_> = (0..4).map(|i| ask(&handle, prompt(i), SCALES[i], i % 2 == 0)).collect();
            driver.spawn().expect("a thread");
            for (i, answer) in answers.into_iter().enumerate() {
                assert_eq!(outcome(answer).tokens, alone[i].0, "{name}, {what}: request {i}");
            }
            let load = handle.load();
            let (most, sum) = (alone.iter().map(|a| a.1).max(), alone.iter().map(|a| a.1).sum::<u64>());
            // Devices that take turns have some of the answers each.
            let n_turn = if matches!(target, Target::Gpus(_) | Target::AfterCpu(_)) { 2 } else { 1 };
            let limit = most.unwrap_or(0) * n_turn + 4;
            assert!(limit < sum && load.n_step <= limit, "{name}, {what}: {load:?} of {alone:?}");
        }
    }
}

/// Embeddings with different scales in one request each, beside answers: on the CPU to the bit.
#[test]
fn embeddings_with_different_lora_scales_share_steps_with_answers() {
    let _t = Timed::new("LoRAs, embeddings");
    let f = Fixture::load("llama-plain");
    let model = adapted(&f, "llama-plain", |name| name != "output.weight");
    let options = EmbedOptions { pooling: Some(Pooling::Mean), norm: VectorNorm::P(2) };
    for (what, target) in ways() {
        let embed = |handle: &Handle, i: usize| {
            let lora = Some(SCALES[i].to_vec());
            let texts = vec![f.tokens[i..i + 5 + i].to_vec()];
            let request = EmbedRequest { lora, ..EmbedRequest::new(texts, options) };
            handle.embed(request, Pooling::Mean).expect("a text")
        };
        let alone: Vec<Vec<Embedding>> = (0..4)
            .map(|i| {
                let (handle, driver) = service(&model, &target);
                let readings = embed(&handle, i);
                driver.spawn().expect("a thread");
                block_on(readings).expect("embeddings")
            })
            .collect();
        let (handle, driver) = service(&model, &target);
        let answer = ask(&handle, &f.tokens[..4], SCALES[3], true);
        let readings: Vec<_> = (0..4).map(|i| embed(&handle, i)).collect();
        driver.spawn().expect("a thread");
        for (i, (readings, alone)) in readings.into_iter().zip(&alone).enumerate() {
            let found = block_on(readings).expect("embeddings");
            let (found, expected) = (&found[0].vectors[0], &alone[0].vectors[0]);
            match target {
                Target::Cpu => assert!(bits(found) == bits(expected), "{what}, {i}"),
                // Steps of more rows have other kernels, which sum up in another order.
                _ => assert!(crate::common::nmse(found, expected) <= 1e-9, "{what}, {i}"),
            }
        }
        assert_eq!(outcome(answer).tokens.len(), 12, "{what}");
        assert!(alone[0][0].vectors != alone[1][0].vectors);
    }
}
