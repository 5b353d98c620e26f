//! Models whose first layers run on the CPU, and the others on devices.

use std::sync::Arc;
use std::time::Duration;

use chaski::errors::{ModelError, RuntimeError};
use chaski::gguf::MemorySource;
use chaski::kernels::FeatureSet;
use chaski::steps::{Runner, RunnerConfig};
use chaski::{DeviceChoice, Engine, EngineBuilder, GenerateOptions, Grammar, KvType, SamplerParams, Source};
use chaski_models::{Model, Target};
use chaski_runtime::gpu::{DeviceMemory, Gpu};
use chaski_runtime::kernels::Caps;
use chaski_runtime::plan::{Memory, PlanError};

use crate::archs::{FAMILIES, Fixture, open, wanted};
use crate::common::{
    Failures, Timed, block_on, build, chain, full, gpu_sets, greedy, left_for_full, nmse, say, text,
};
use crate::serve::outcome;
use crate::stages::gpus;

/// By default these families alone, whose kernels the prompts of these tests need, too. [`crate::stages`] has shared
/// caches and experts.
const FIXTURES: [&str; 2] = ["gemma3-dense", "lfm2-full-attention"];

/// Fixtures with recurrent state are no rows of [`FAMILIES`].
const RECURRENT: [&str; 3] = ["lfm2-full-attention", "qwen3next-moe", "mamba2-dense"];

/// The families to run, each with its tolerance. Logits of recurrent ones differ by reordered sums.
fn families() -> Vec<(&'static str, f64)> {
    let all = FAMILIES.iter().copied().chain(RECURRENT.map(|name| (name, 1e-10)));
    all.filter(|(name, _)| full() || FIXTURES.contains(name)).filter(|(name, _)| wanted(name)).collect()
}

fn config(n_seq: u32) -> RunnerConfig {
    RunnerConfig { n_ctx: 64, n_seq, chunk: 32, kv: KvType::F32, ..RunnerConfig::default() }
}

fn load(model: &Model<MemorySource>, gpus: &[Arc<Gpu>], config: &RunnerConfig) -> Result<Runner, ModelError> {
    block_on(Runner::load(model, &Target::AfterCpu(gpus.to_vec()), config, |_| {}))
}

fn loaded(model: &Model<MemorySource>, gpus: &[Arc<Gpu>], config: &RunnerConfig) -> Runner {
    load(model, gpus, config).unwrap_or_else(|e| panic!("{}", chain(&e)))
}

fn bytes_of(memory: &Memory, what: &str) -> u64 {
    memory.items.iter().filter(|i| i.what == what).map(|i| i.n_byte).sum()
}

/// All tokens in pieces and one by one, rewound, in batches of three sequences of which one shares a prefix, and after
/// a session was restored; each with the positions of its logits.
fn logits(r: &mut Runner, f: &Fixture) -> Vec<(String, usize, Vec<f32>)> {
    let mut out = Vec::new();
    for (n, piece) in [(48, 48), (20, 7), (9, 1)] {
        r.truncate(0);
        let found = block_on(r.eval_all(&f.tokens[..n], piece)).expect("tokens run");
        out.push((format!("{n} tokens in pieces of {piece}"), 0, found));
    }
    r.truncate(4);
    block_on(r.prefill(&f.tokens[4..30])).expect("tokens run");
    out.push(("after others".into(), 29, block_on(r.logits()).expect("logits").clone()));
    r.select(1);
    out.push(("another sequence".into(), 0, block_on(r.eval_all(&f.tokens[..13], 8)).expect("tokens run")));
    r.select(0);
    r.truncate(0);
    for i in 0..12 {
        let columns = [(0, f.tokens[2 * i]), (1, f.tokens[13 + i]), (0, f.tokens[2 * i + 1])];
        let found = block_on(r.eval_columns(&columns)).expect("three tokens");
        for (found, at) in found.chunks_exact(f.n_vocab).zip([2 * i, 13 + i, 2 * i + 1]) {
            out.push((format!("batch {i}"), at, found.to_vec()));
        }
    }
    let shared = r.share(0, 2, 20);
    for i in 0..4 {
        let columns = [(2, f.tokens[shared + i]), (0, f.tokens[24 + i])];
        let found = block_on(r.eval_columns(&columns)).expect("two tokens");
        for (found, at) in found.chunks_exact(f.n_vocab).zip([shared + i, 24 + i]) {
            out.push((format!("after a share, {i}"), at, found.to_vec()));
        }
    }
    let session = block_on(r.save()).expect("a session");
    r.truncate(0);
    block_on(r.eval_all(&f.tokens[40..43], 3)).expect("other tokens");
    block_on(r.restore(&session)).expect("the session");
    out.push(("a session".into(), 28, block_on(r.eval_all(&f.tokens[28..35], 3)).expect("tokens run")));
    out
}

#[test]
fn layers_on_the_cpu_before_those_of_devices_give_the_logits_of_other_engines() {
    let _t = Timed::new("after the CPU, families");
    let mut failures = Failures::default();
    let devices: Vec<_> = gpu_sets().iter().map(|set| gpus(2, *set)).collect();
    for (nth, (name, limit)) in families().into_iter().enumerate() {
        let f = Fixture::load(name);
        let model = open(f.gguf(nth % 3 == 2, &|_, _| {})).expect("a fixture is a model");
        // One or two devices after the CPU, which has less, as much or more.
        let shares: &[f32] = [&[1.0, 1.0][..], &[1.0, 3.0], &[3.0, 1.0], &[1.0, 1.0, 1.0]][nth % 4];
        let gpus = &devices[nth % devices.len()][..shares.len() - 1];
        let config = RunnerConfig { shares: shares.to_vec(), ..config(3) };
        let mut r = match load(&model, gpus, &config) {
            Ok(r) => r,
            // Small models have too few places to cut.
            Err(ModelError::Runtime(RuntimeError::Plan(PlanError::Cut { .. }))) if shares.len() > 2 => {
                loaded(&model, &gpus[..1], &RunnerConfig { shares: vec![1.0, 1.0], ..config.clone() })
            }
            Err(e) => panic!("{name}: {}", chain(&e)),
        };
        let mut worst = 0.0f64;
        for (what, at, found) in logits(&mut r, &f) {
            let e = nmse(&found, f.logits_of(at, at + found.len() / f.n_vocab));
            worst = worst.max(e);
            failures
                .check(e <= limit, || format!("{name}, shares {shares:?}, {what}: {e:.1e} > {limit:.0e}"));
        }
        r.select(0);
        r.truncate(0);
        block_on(r.prefill(&f.tokens[..9])).expect("tokens run");
        let chosen = block_on(r.greedy(12)).expect("tokens that the device chooses");
        let mut on_cpu = block_on(Runner::load(&model, &Target::Cpu, &config, |_| {})).expect("it fits");
        block_on(on_cpu.prefill(&f.tokens[..9])).expect("tokens run");
        let expected = block_on(on_cpu.greedy(12)).expect("tokens");
        failures.check(chosen == expected, || format!("{name}: chose {chosen:?}, the CPU {expected:?}"));
        let gpu = r.gpu().expect("a GPU");
        let of_cpu = gpu.memory_on_cpu().expect("layers on the CPU").n_byte();
        let of_gpus: u64 = (0..gpu.n_device()).map(|i| bytes_of(&gpu.memory_of(i), "weights")).sum();
        say(format!(
            "{name:24} {shares:?} worst NMSE {worst:.1e}; {of_cpu} bytes on the CPU, weights {of_gpus}"
        ));
        failures.check(of_cpu > 0 && of_gpus > 0, || format!("{name}: a part is empty"));
    }
    failures.conclude();
}

/// A prompt in pieces of several steps, which the CPU and the device run at once.
#[test]
fn pieces_of_prompts_are_under_way_on_the_cpu_and_a_device() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("after the CPU, prompts");
    let mut failures = Failures::default();
    for name in ["gemma3-dense", "lfm2-full-attention"].into_iter().filter(|name| wanted(name)) {
        let f = Fixture::load(name);
        let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
        let sizes = RunnerConfig { n_ctx: 384, chunk: 128, shares: vec![1.0, 1.0], ..config(1) };
        let prompt: Vec<u32> = f.tokens.iter().cycle().take(300).copied().collect();
        let run = |r: &mut Runner, bound| {
            r.set_prompt_bound(bound);
            r.truncate(0);
            block_on(r.prefill(&prompt)).expect("a prompt");
            let logits = block_on(r.logits()).expect("logits").clone();
            (logits, block_on(r.greedy(11)).expect("tokens"))
        };
        let whole = Duration::from_secs(3600);
        let mut one = block_on(Runner::load(&model, &Target::Cpu, &sizes, |_| {})).expect("it fits");
        let expected = run(&mut one, whole);
        let mut r = loaded(&model, &gpus(1, FeatureSet::Sg), &sizes);
        for bound in [whole, Duration::ZERO] {
            let found = run(&mut r, bound);
            let e = nmse(&found.0, &expected.0);
            failures.check(e <= 1e-8, || format!("{name}, bound {bound:?}: {e:.1e}"));
            failures.check(found.1 == expected.1, || format!("{name}, bound {bound:?}: other tokens"));
        }
    }
    failures.conclude();
}

/// Greedy answers, some under masks and one from logits, several at once: steps mix prompts and answers.
#[test]
fn an_engine_after_the_cpu_writes_the_texts_of_one_device() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("after the CPU, an engine");
    let gpus = gpus(2, FeatureSet::Sg);
    let sizes = |n| Engine::builder(Source::Default).context(192).chunk(32).sequences(n);
    let words = Grammar::Regex("[A-Z][a-z]{2,9}( [a-z]{2,9}){3,9}[.!]".into());
    let requests: Vec<(String, GenerateOptions)> = (0..7)
        .map(|i| {
            let (grammar, logprobs) = ((i % 3 == 1).then(|| words.clone()), (i == 6).then_some(1));
            let options = GenerateOptions { grammar, logprobs, ..greedy(9 + i) };
            let prompt = "Once upon a time there was a park. ".repeat(i % 3);
            (format!("{prompt} The dog of girl {i} saw"), options)
        })
        .collect();
    let mut one = build(sizes(1).gpus(gpus[..1].to_vec()));
    let alone = |engine: &mut Engine, (prompt, options): &(String, GenerateOptions)| {
        text(engine, prompt, options.clone()).expect("an answer")
    };
    let expected: Vec<String> = requests.iter().map(|r| alone(&mut one, r)).collect();
    let engine = |n_gpu: usize, n_layer, n| build(sizes(n).gpus(gpus[..n_gpu].to_vec()).gpu_layers(n_layer));
    let mut mixed = engine(1, 2, 1);
    for (i, request) in requests.iter().enumerate() {
        assert_eq!(alone(&mut mixed, request), expected[i], "request {i}");
    }
    let refused = |e: ModelError| {
        assert!(e.to_string().ends_with("needs all layers on one device, found several"), "{e}")
    };
    refused(block_on(mixed.runner().profile(1, 0, 1)).map(drop).expect_err("a profile"));
    let handle = engine(2, 3, 4).spawn().expect("a thread");
    let ask = |(prompt, options): &(String, GenerateOptions)| {
        handle.generate(prompt, options.clone()).expect("a request that fits")
    };
    let answers: Vec<_> = requests.iter().map(ask).collect();
    for (i, answer) in answers.into_iter().enumerate() {
        let found = outcome(answer);
        assert_eq!((&found.text, &found.failed), (&expected[i], &None), "request {i}");
        assert_eq!(found.on_cpu.is_some(), i == 6, "request {i}: who chooses");
    }
    // Drawn answers are those of a GPU, too, as it chooses the tokens.
    let drawn = SamplerParams { seed: Some(11), temp: 1.1, top_k: 30, ..SamplerParams::default() };
    let options = GenerateOptions { sampler: drawn, ..greedy(12) };
    let request = ("A cat".to_owned(), options);
    assert_eq!(alone(&mut mixed, &request), alone(&mut one, &request));
}

#[test]
fn the_number_of_layers_on_a_gpu_decides_where_a_model_is_cut() {
    let f = Fixture::load("qwen2-dense");
    let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
    let gpus = gpus(2, FeatureSet::Sg);
    let kv_of = |n: u32| {
        let r = loaded(&model, &gpus[..1], &RunnerConfig { gpu_layers: Some(n), ..config(1) });
        let gpu = r.gpu().expect("a GPU");
        // A device with a cache has a scratch page.
        let page = gpu.config().page_bytes(&block_on(model.graph(80)).expect("a graph")).unwrap_or(0);
        bytes_of(&gpu.memory_of(0), "kv cache") - page
    };
    let one = kv_of(1);
    assert!(one > 0, "a layer has a cache");
    for n in 2..=model.config().n_layer {
        assert_eq!(kv_of(n), u64::from(n) * one, "the cache of {n} layers");
    }
    // Memory told before loading is what is allocated.
    for (shares, gpu_layers, n_gpu) in
        [(vec![], Some(1), 1), (vec![1.0, 2.0], None, 1), (vec![1.0; 3], None, 2), (vec![], None, 1)]
    {
        let config = RunnerConfig { shares, gpu_layers, ..config(2) };
        let caps: Vec<&Caps> = gpus[..n_gpu].iter().map(|gpu| gpu.caps()).collect();
        let free: Vec<Option<DeviceMemory>> = gpus[..n_gpu].iter().map(|gpu| gpu.memory()).collect();
        let told = block_on(config.memory_after_cpu(&model, &caps, &free)).expect("a plan");
        let r = loaded(&model, &gpus[..n_gpu], &config);
        let gpu = r.gpu().expect("a GPU");
        let found = [gpu.memory_on_cpu().expect("layers on the CPU")].into_iter();
        let found: Vec<Memory> = found.chain((0..n_gpu).map(|i| gpu.memory_of(i))).collect();
        assert_eq!(told, found, "{gpu_layers:?}");
        assert_eq!(Memory::sum(&told).n_byte(), r.memory().n_byte());
    }
    // On devices with little room, the CPU has the rest.
    let told = |n_free| {
        let free = [Some(DeviceMemory { n_byte: 1 << 30, n_free, n_budget: 1 << 30 })];
        let all = block_on(config(1).memory_after_cpu(&model, &[gpus[0].caps()], &free)).expect("a plan");
        bytes_of(&all[1], "weights")
    };
    let [all, some, least] = [1 << 30, 1_600_000, 0].map(told);
    assert!(all > some && some > least, "{all}, {some}, {least}");
}

#[test]
fn the_cpu_is_named_in_a_list_of_devices() {
    let builder = |names: &[&str]| {
        Engine::builder(Source::Default).context(64).devices(names.iter().map(ToString::to_string))
    };
    let first = &block_on(chaski::gpu::adapters())[0].name;
    let parts = |builder: EngineBuilder| {
        let mut engine = build(builder);
        assert!(!text(&mut engine, "Once", greedy(3)).expect("an answer").is_empty());
        assert_eq!(engine.device().name, format!("CPU, {first}"));
        engine
            .memory_by_device()
            .into_iter()
            .map(|(name, memory)| (name, memory.n_byte()))
            .collect::<Vec<_>>()
    };
    let more = parts(builder(&["0", "cpu"]).shares(vec![1.0, 4.0]));
    let less = parts(builder(&["cpu", "0"]).shares(vec![1.0, 4.0]));
    for found in [&more, &less] {
        assert_eq!(found.iter().map(|part| &*part.0).collect::<Vec<_>>(), ["CPU", first]);
    }
    assert!(more[0].1 > less[0].1 && more[1].1 < less[1].1, "{more:?} and {less:?}");
    // Layers on GPUs, in other words.
    let layers =
        |n| build(Engine::builder(Source::Default).context(64).device(DeviceChoice::Gpu(None)).gpu_layers(n));
    assert_eq!((layers(0).device().name.as_str(), layers(0).gpus().len()), ("CPU", 0));
    assert_eq!(layers(1).device().name, format!("CPU, {first}"));
    assert_eq!((layers(99).device().name.as_str(), layers(99).memory_by_device().len()), (first.as_str(), 1));
    let error =
        |builder: EngineBuilder| chain(&block_on(builder.build()).map(drop).expect_err("no such devices"));
    for names in [&["cpu"][..], &["cpu", "0", "cpu"]] {
        let e = error(builder(names));
        assert!(
            e.ends_with("the CPU may appear only once in a list of devices, beside at least one GPU"),
            "{e}"
        );
    }
    let e = error(builder(&["0", "cpu"]).shares(vec![1.0, 1.0, 1.0]));
    assert!(e.contains("the shares of 2 devices are"), "{e}");
    let f = Fixture::load("qwen3moe-moe");
    let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
    let offload = RunnerConfig { experts_on_cpu: 1, ..config(1) };
    let e = load(&model, &gpus(1, FeatureSet::Sg), &offload).map(drop).expect_err("both");
    assert!(
        matches!(&e, ModelError::Runtime(RuntimeError::Plan(PlanError::OffloadAfterCpu))),
        "{}",
        chain(&e)
    );
}

#[test]
fn a_lost_gpu_leaves_the_model_to_the_cpu_and_the_other() {
    let _t = Timed::new("after the CPU, a lost device");
    let gpus = gpus(2, FeatureSet::Sg);
    let engine = |gpus: &[Arc<Gpu>]| {
        build(Engine::builder(Source::Default).context(128).chunk(32).gpus(gpus.to_vec()).gpu_layers(3))
    };
    let prompt = "Once upon a time there was a";
    let expected = text(&mut engine(&gpus[1..]), prompt, greedy(12)).expect("a text");
    let mut e = engine(&gpus);
    let mut g = e.generate(prompt, greedy(12)).expect("a generation");
    let mut found = String::new();
    for nth in 0.. {
        if nth == 4 {
            gpus[0].destroy();
        }
        let Some(piece) = block_on(g.next()).expect("the rest goes on") else { break };
        found += &piece.text;
    }
    drop(g);
    assert_eq!(found, expected);
    let parts: Vec<String> = e.memory_by_device().into_iter().map(|part| part.0).collect();
    assert_eq!(parts, ["CPU", &gpus[1].summary().name]);
    gpus[1].destroy();
    let lost = text(&mut e, prompt, greedy(3)).expect_err("no GPU is left");
    assert!(lost.is_device_lost(), "{}", chain(&lost));
}
