//! LoRAs in one step: rows with different scales have the bits that they have beside rows with their own.

use chaski::embedding::{EmbedOptions, EmbedRequest, Embedding, Pooling, Readings, VectorNorm};
use chaski::gguf::MemorySource;
use chaski::kernels::FeatureSet;
use chaski::serve::Request;
use chaski::steps::Runner;
use chaski::{GenerateOptions, KvType};
use chaski_models::serve::{Answer, Driver, Handle, serve};
use chaski_models::{Model, RunnerConfig, Target};

use crate::archs::{Fixture, open};
use crate::common::{Timed, block_on, chain, coop_gpu, full, greedy, nmse, shared_gpu};
use crate::lora::{FIRST, SECOND, attach, targets};
use crate::serve::outcome;
use crate::stages::gpus;
use crate::streaming::{bits, with_experts};

/// Scales of four sequences, two of which have the same.
const SCALES: [[f32; 2]; 4] = [[0.75, 0.0], [0.0, -1.5], [0.75, 0.0], [-0.5, 1.0]];

/// A fixture with LoRAs of all matrices; MoE with more experts than a token uses.
fn adapted(f: &Fixture, name: &str) -> Model<MemorySource> {
    let bytes = if name.ends_with("moe") { with_experts(f, 6, 2, None) } else { f.gguf(false, &|_, _| {}) };
    let mut model = open(bytes).expect("a fixture is a model");
    let tensors = targets(&model);
    let has = |part: &str| tensors.keys().any(|name| name.contains(part));
    assert!(has("token_embd") && has("output.weight") && (has("_exps") || !name.ends_with("moe")), "{name}");
    let arch = model.arch().name;
    for lora in [FIRST, SECOND] {
        attach(&mut model, lora.gguf(arch, &tensors), 0.0).expect("a LoRA that fits");
    }
    model
}

/// The CPU and a device; if tests run in full, one with kernels for CPUs, two devices, and a device after the CPU, too.
fn ways() -> Vec<(&'static str, Target)> {
    let of = |set| Target::Gpu(shared_gpu(set, false));
    let mut all = vec![("CPU", Target::Cpu), ("subgroups", of(FeatureSet::Sg))];
    if full() {
        all.extend([
            ("two devices", Target::Gpus(gpus(2, FeatureSet::Sg))),
            ("after the CPU", Target::AfterCpu(vec![shared_gpu(FeatureSet::Sg, false)])),
            ("alone", of(FeatureSet::Alone)),
            ("base", of(FeatureSet::Base)),
        ]);
    }
    all.extend(coop_gpu().map(|gpu| ("cooperative matrices", Target::Gpu(gpu))));
    all
}

/// Models with LoRAs, and ways to run each: by default experts run on the CPU alone.
fn each(mut check: impl FnMut(&str, &Fixture, &Model<MemorySource>, &Target)) {
    let ways = ways();
    for (name, n_way) in [("llama-plain", ways.len()), ("llama-moe", if full() { ways.len() } else { 1 })] {
        let f = Fixture::load(name);
        let model = adapted(&f, name);
        for (what, target) in &ways[..n_way] {
            check(&format!("{name}, {what}"), &f, &model, target);
        }
    }
}

fn load(model: &Model<MemorySource>, target: &Target) -> Runner {
    // Twice as many sequences as requests, and thus pages, of which running requests reserve some.
    let sizes = RunnerConfig { n_ctx: 64, n_seq: 8, chunk: 32, kv: KvType::F32, ..RunnerConfig::default() };
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

/// Embeddings, plain products and the output matrix; products by experts.
#[test]
fn rows_with_different_lora_scales_have_the_bits_that_they_have_beside_their_own() {
    let _t = Timed::new("LoRAs, rows of a step");
    each(|what, f, model, target| {
        let mut r = load(model, target);
        let found = steps(&mut r, &f.tokens, |seq| SCALES[seq]);
        for of in [0, 1, 3] {
            let expected = steps(&mut r, &f.tokens, |_| SCALES[of]);
            for seq in 0..4 {
                let is_same = bits(&found[seq].concat()) == bits(&expected[seq].concat());
                assert_eq!(is_same, SCALES[seq] == SCALES[of], "{what}: {seq} with scales of {of}");
            }
        }
    });
}

/// A service that has not begun, so that requests begin in the same step.
fn service(model: &Model<MemorySource>, target: &Target) -> (Handle, Driver<Runner>) {
    serve(load(model, target), model.shared_text().0, 16).expect("a service")
}

fn ask(handle: &Handle, prompt: &[u32], scales: [f32; 2]) -> Answer {
    let options = GenerateOptions { lora: Some(scales.to_vec()), ..greedy(12) };
    handle.generate(Request::new(prompt.to_vec(), options)).expect("a request that fits")
}

/// Requests of several sets of scales share their steps, and have the tokens that each has alone.
#[test]
fn requests_with_different_lora_scales_share_steps() {
    let _t = Timed::new("LoRAs, steps of requests");
    each(|what, f, model, target| {
        // Prompts of several lengths.
        let begin = |handle: &Handle, i: usize| ask(handle, &f.tokens[i..i + 3 + 2 * (i % 3)], SCALES[i]);
        let (handle, driver) = service(model, target);
        driver.spawn().expect("a thread");
        let alone: Vec<Vec<u32>> = (0..4).map(|i| outcome(begin(&handle, i)).tokens).collect();
        assert!(alone[0] != alone[1] && alone[1] != alone[3], "{what}: {alone:?}");
        let one_by_one = handle.load().n_step;
        let (handle, driver) = service(model, target);
        let answers: Vec<_> = (0..4).map(|i| begin(&handle, i)).collect();
        driver.spawn().expect("a thread");
        let together: Vec<Vec<u32>> = answers.into_iter().map(|a| outcome(a).tokens).collect();
        assert_eq!(together, alone, "{what}");
        let load = handle.load();
        // Where devices take turns, each step has some of the answers.
        let n_turn = if matches!(target, Target::Gpus(_) | Target::AfterCpu(_)) { 2 } else { 1 };
        let limit = one_by_one * n_turn / 4 + 4;
        assert!(load.n_step <= limit, "{what}: {load:?}, one by one {one_by_one}");
    });
}

/// Embeddings with different scales beside an answer: on the CPU to the bit.
#[test]
fn embeddings_with_different_lora_scales_share_steps_with_answers() {
    let _t = Timed::new("LoRAs, embeddings");
    let f = Fixture::load("llama-plain");
    let model = adapted(&f, "llama-plain");
    let options = EmbedOptions { pooling: Some(Pooling::Mean), norm: VectorNorm::P(2) };
    for (what, target) in
        [("CPU", Target::Cpu), ("subgroups", Target::Gpu(shared_gpu(FeatureSet::Sg, false)))]
    {
        let embed = |handle: &Handle, i: usize| {
            let lora = Some(SCALES[i].to_vec());
            let texts = vec![f.tokens[i..i + 5 + i].to_vec()];
            let request = EmbedRequest { lora, ..EmbedRequest::new(texts, options) };
            handle.embed(request, Pooling::Mean).expect("a text")
        };
        let read = |readings: Readings<Embedding>| block_on(readings).expect("an embedding").remove(0);
        let (handle, driver) = service(&model, &target);
        driver.spawn().expect("a thread");
        let alone: Vec<Embedding> = (0..4).map(|i| read(embed(&handle, i))).collect();
        assert!(alone[0].vectors != alone[1].vectors, "{what}");
        let one_by_one = handle.load().n_step;
        let (handle, driver) = service(&model, &target);
        let answer = ask(&handle, &f.tokens[..4], SCALES[3]);
        let readings: Vec<_> = (0..4).map(|i| embed(&handle, i)).collect();
        driver.spawn().expect("a thread");
        for (i, (readings, alone)) in readings.into_iter().zip(&alone).enumerate() {
            let (found, expected) = (&read(readings).vectors[0], &alone.vectors[0]);
            match target {
                Target::Cpu => assert!(bits(found) == bits(expected), "{what}, {i}"),
                // Steps of more rows have other kernels, which sum up in another order.
                _ => assert!(nmse(found, expected) <= 1e-9, "{what}, {i}"),
            }
        }
        assert_eq!(outcome(answer).tokens.len(), 12, "{what}");
        // The answer takes 12.
        assert!(
            handle.load().n_step < 12 + one_by_one,
            "{what}: {:?}, one by one {one_by_one}",
            handle.load()
        );
    }
}
