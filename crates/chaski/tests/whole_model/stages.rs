//! Models over several devices: the same bits as on one, and each device holds only its part.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chaski::errors::{ModelError, RuntimeError};
use chaski::gpu::GpuOptions;
use chaski::kernels::FeatureSet;
use chaski::steps::{Executor as _, Input, Row, Runner, RunnerConfig, Step, Want};
use chaski::{DeviceChoice, Engine, EngineBuilder, GenerateOptions, Grammar, SamplerParams, Source};
use chaski_models::Target;
use chaski_runtime::gpu::Gpu;
use chaski_runtime::plan::{Memory, PlanError};

use crate::archs::{Fixture, open, wanted};
use crate::common::{
    Failures, Timed, block_on, build, chain, full, greedy, left_for_full, one_in, say, text,
};
use crate::serve::outcome;
use crate::streaming::{self, N_EXPERT, N_USED, compare, config, logits, with_experts};

/// Dense, windows, shared caches with AltUp, latents, MoE, recurrent state of three kinds, and recurrent state with
/// MoE.
const FIXTURES: &[&str] = &[
    "llama-gqa-rope_freqs",
    "gemma3-dense",
    "gemma3n-dense",
    "deepseek2-moe",
    "gpt-oss-moe",
    "mamba2-dense",
    "lfm2-full-attention",
    "qwen3next-moe",
];

/// Those that run with several sequences on two devices; by default only so.
const SEVERAL: [&str; 2] = ["gemma3-dense", "lfm2-full-attention"];
/// The one that runs with one by default: latents with experts.
const ONE: &str = "deepseek2-moe";

/// Separately opened devices of one adapter: none sees the buffers of another.
pub(crate) fn gpus(n: usize, set: FeatureSet) -> Vec<Arc<Gpu>> {
    let options = GpuOptions { set: Some(set), no_f16: set == FeatureSet::Base, ..GpuOptions::default() };
    let open = |_| Arc::new(block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver"));
    (0..n).map(open).collect()
}

fn bytes_of(memory: &Memory, what: &str) -> u64 {
    memory.items.iter().filter(|i| i.what == what).map(|i| i.n_byte).sum()
}

/// Results of several ways to run tokens.
fn all(f: &Fixture, r: &mut Runner) -> Vec<(String, Vec<u32>)> {
    let mut out = logits(r, &f.tokens);
    r.truncate(0);
    block_on(r.prefill(&f.tokens[..9])).expect("tokens run");
    out.push(("chosen on the device".into(), block_on(r.greedy(12)).expect("tokens")));
    out
}

#[test]
fn a_plan_cut_over_two_devices_gives_the_same_bits() {
    let _t = Timed::new("stages, two devices");
    let mut failures = Failures::default();
    for (nth, name) in FIXTURES.iter().copied().enumerate().filter(|(_, n)| wanted(n)) {
        if !full() && name != ONE {
            continue;
        }
        let f = Fixture::load(name);
        let file = if name.ends_with("moe") {
            with_experts(&f, N_EXPERT, N_USED, None)
        } else {
            f.gguf(true, &|_, _| {})
        };
        let model = open(file).expect("a fixture is a model");
        // By default the set whose pipelines other tests compile.
        let gpus = gpus(2, if full() { [FeatureSet::Sg, FeatureSet::Base][nth % 2] } else { FeatureSet::Sg });
        let load = |target: Target, config: &RunnerConfig| {
            let loaded = block_on(Runner::load(&model, &target, config, |_| {}));
            loaded.unwrap_or_else(|e| panic!("{name}: {}", chain(&e)))
        };
        let mut one = load(Target::Gpu(gpus[1].clone()), &config(None));
        let expected = all(&f, &mut one);
        let mut two = load(Target::Gpus(gpus.clone()), &config(None));
        compare(&mut failures, name, &all(&f, &mut two), &expected);
        // Each device has a part, and no part of the cache or of the state is on both.
        let (whole, split) = (one.memory(), two.gpu().expect("a GPU"));
        assert_eq!(split.n_device(), 2);
        let parts = [0, 1].map(|d| split.memory_of(d));
        for (d, part) in parts.iter().enumerate() {
            failures.check(bytes_of(part, "weights") > 0, || format!("{name}: device {d} has no weights"));
        }
        let layers = |m: &Memory| bytes_of(m, "kv cache") + bytes_of(m, "recurrent state");
        let pages = parts.iter().filter(|m| bytes_of(m, "kv cache") > 0).count() as u64;
        say(format!(
            "{name:24} weights {:?} of {}, cache and state {:?} of {}",
            parts.each_ref().map(|m| bytes_of(m, "weights")),
            bytes_of(&whole, "weights"),
            parts.each_ref().map(layers),
            layers(&whole),
        ));
        // Each device with a cache has a scratch page.
        let page =
            one.gpu().expect("a GPU").config().page_bytes(&block_on(model.graph(64)).expect("a graph"));
        let doubled = page.unwrap_or(0).next_multiple_of(16) * pages.saturating_sub(1);
        let sum: u64 = parts.iter().map(layers).sum();
        failures.check(sum == layers(&whole) + doubled, || format!("{name}: {sum} bytes of layers"));
    }
    failures.conclude();
}

#[test]
fn offloaded_experts_come_to_the_device_of_their_layer() {
    // Experts on one device: `streaming`; on two, without offload: `a_plan_cut_over_two_devices_gives_the_same_bits`.
    if left_for_full() {
        return;
    }
    let _t = Timed::new("stages, experts");
    let mut failures = Failures::default();
    let f = Fixture::load("qwen3moe-moe");
    let model = open(with_experts(&f, N_EXPERT, N_USED, None)).expect("a fixture is a model");
    let gpus = gpus(2, FeatureSet::Sg);
    let load = |target: Target, config: &RunnerConfig| {
        block_on(Runner::load(&model, &target, config, |_| {})).unwrap_or_else(|e| panic!("{}", chain(&e)))
    };
    let expected = all(&f, &mut load(Target::Gpu(gpus[0].clone()), &config(None)));
    for slots in [3, N_USED].into_iter().take(if full() { 2 } else { 1 }) {
        let mut r = load(Target::Gpus(gpus.clone()), &config(Some(slots)));
        compare(&mut failures, &format!("{slots} slots"), &all(&f, &mut r), &expected);
        let reads = r.gpu().and_then(|g| g.expert_reads()).expect("offloaded experts");
        failures.check(reads.read > 0, || format!("{slots} slots: {reads:?}"));
    }
    failures.conclude();
}

#[test]
fn sequences_and_their_copies_lie_on_all_devices() {
    let _t = Timed::new("stages, sequences");
    for name in SEVERAL {
        let f = Fixture::load(name);
        let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
        let gpus = gpus(2, FeatureSet::Sg);
        let run = |target: Target| {
            let config = RunnerConfig { n_seq: 3, ..config(None) };
            let loaded = block_on(Runner::load(&model, &target, &config, |_| {}));
            let mut r = loaded.unwrap_or_else(|e| panic!("{}", chain(&e)));
            for seq in 0..3 {
                r.select(seq);
                block_on(r.feed(&f.tokens[seq..10 + 5 * seq])).expect("tokens run");
            }
            let mut out = Vec::new();
            for t in &f.tokens[30..34] {
                let columns: Vec<(usize, u32)> = (0..3).map(|seq| (seq, *t + seq as u32)).collect();
                out.extend(block_on(r.eval_columns(&columns)).expect("three columns"));
            }
            r.select(2);
            let session = block_on(r.save()).expect("a session");
            r.truncate(0);
            block_on(r.restore(&session)).expect("the session");
            out.extend(block_on(r.eval_all(&f.tokens[40..43], 3)).expect("tokens run"));
            streaming::bits(&out)
        };
        assert!(run(Target::Gpu(gpus[0].clone())) == run(Target::Gpus(gpus.clone())), "{name}: other bits");
    }
}

#[test]
fn shares_decide_where_a_model_is_cut_and_too_many_devices_are_refused() {
    let f = Fixture::load("llama-gqa-rope_freqs");
    let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
    let gpus = gpus(3, FeatureSet::Sg);
    let load = |n: usize, shares: &[f32]| {
        let config = RunnerConfig { shares: shares.to_vec(), ..config(None) };
        block_on(Runner::load(&model, &Target::Gpus(gpus[..n].to_vec()), &config, |_| {}))
    };
    let weights = |shares: &[f32]| {
        let r = load(2, shares).unwrap_or_else(|e| panic!("{}", chain(&e)));
        [0, 1].map(|d| bytes_of(&r.gpu().expect("a GPU").memory_of(d), "weights"))
    };
    let (less, more) = (weights(&[1.0, 9.0]), weights(&[9.0, 1.0]));
    assert!(less[0] < more[0] && less[1] > more[1], "{less:?} {more:?}");
    let expected = logits(&mut load(1, &[]).expect("one device"), &f.tokens);
    let mut failures = Failures::default();
    compare(
        &mut failures,
        "three devices",
        &logits(&mut load(3, &[]).expect("three devices"), &f.tokens),
        &expected,
    );
    failures.conclude();
    // More devices than possible cuts.
    let many = Target::Gpus(gpus.iter().cycle().take(99).cloned().collect());
    let refused = |target: Target| {
        let loaded = block_on(Runner::load(&model, &target, &config(None), |_| {}));
        loaded.map(drop).expect_err("no devices for this model")
    };
    let e = refused(many);
    let is_cut = matches!(&e, ModelError::Runtime(RuntimeError::Plan(PlanError::Cut { n_device: 99, .. })));
    assert!(is_cut, "{}", chain(&e));
    let e = refused(Target::Gpus(Vec::new()));
    let is_none = matches!(&e, ModelError::Runtime(RuntimeError::Plan(PlanError::NoDevice)));
    assert!(is_none, "{}", chain(&e));
    let e = load(2, &[1.0]).map(drop).expect_err("a share is missing");
    let is_shares =
        matches!(&e, ModelError::Runtime(RuntimeError::Plan(PlanError::Shares { n_device: 2, .. })));
    assert!(is_shares, "{}", chain(&e));
}

/// A service over two devices: greedy, drawn and penalised answers, under masks and from logits, several at once. By
/// default every second of them.
#[test]
fn an_engine_over_two_devices_writes_the_texts_of_one() {
    let _t = Timed::new("stages, an engine");
    let gpus = gpus(2, FeatureSet::Sg);
    let engine = |gpus: &[Arc<Gpu>], n| {
        let sizes = Engine::builder(Source::Default).context(192).chunk(32).sequences(n);
        build(sizes.gpus(gpus.to_vec()))
    };
    let drawn = SamplerParams { seed: Some(11), temp: 1.1, top_k: 30, ..SamplerParams::default() };
    let penalised = SamplerParams { penalty_repeat: 1.3, logit_bias: vec![(300, 1.5)], ..drawn.clone() };
    let words = Grammar::Regex("[A-Z][a-z]{2,9}( [a-z]{2,9}){3,9}[.!]".into());
    let names =
        Grammar::from_text("root ::= (name \" and \"){1,4} name\nname ::= \"Tom\" | \"Anna\" | \"Lily\"\n");
    let cases = [
        (SamplerParams::greedy(), None, None),
        (drawn.clone(), None, None),
        (SamplerParams::greedy(), Some(&words), None),
        (drawn, Some(&names), None),
        (penalised.clone(), Some(&words), None),
        (penalised, None, None),
        (SamplerParams::greedy(), Some(&names), Some(1)),
    ];
    let requests: Vec<(String, GenerateOptions)> = one_in(2, (0..).zip(cases))
        .map(|(i, (sampler, grammar, logprobs))| {
            let options = GenerateOptions { sampler, grammar: grammar.cloned(), logprobs, ..greedy(9 + i) };
            (
                format!("{} The dog of girl {i} saw", "Once upon a time there was a park. ".repeat(i % 3)),
                options,
            )
        })
        .collect();
    let mut one = engine(&gpus[1..], 1);
    let alone = |engine: &mut Engine, (prompt, options): &(String, GenerateOptions)| {
        text(engine, prompt, options.clone()).expect("an answer")
    };
    let expected: Vec<String> = requests.iter().map(|r| alone(&mut one, r)).collect();
    let mut two = engine(&gpus, 1);
    assert_eq!((two.gpus().len(), two.loaded().gpu().map(|g| g.n_device())), (2, Some(2)));
    let name = &gpus[0].summary().name;
    assert_eq!(two.device().name, format!("{name}, {name}"));
    for (i, request) in requests.iter().enumerate() {
        assert_eq!(alone(&mut two, request), expected[i], "request {i}");
    }
    // A conversation moves between them.
    let saved = block_on(two.save()).expect("a prefix");
    block_on(one.restore(&saved)).expect("the same model");
    // Neither knows what a kernel costs on several devices.
    let refused = |e: ModelError| {
        assert!(e.to_string().ends_with("needs all layers on one device, found several"), "{e}")
    };
    refused(block_on(two.runner().profile(1, 0, 1)).map(drop).expect_err("a profile"));
    refused(block_on(two.runner().tune(Duration::ZERO, |_| ())).map(drop).expect_err("tuning"));
    let handle = engine(&gpus, 4).spawn().expect("a thread");
    for n in [2, requests.len()].into_iter().skip(usize::from(!full())) {
        let ask = |(prompt, options): &(String, GenerateOptions)| {
            handle.generate(prompt, options.clone()).expect("a request that fits")
        };
        let answers: Vec<_> = requests[..n].iter().map(ask).collect();
        for (i, answer) in answers.into_iter().enumerate() {
            let found = outcome(answer);
            assert_eq!((&found.text, &found.failed), (&expected[i], &None), "request {i} of {n}");
            let is_on_cpu = requests[i].1.logprobs.is_some();
            assert_eq!(found.on_cpu.is_some(), is_on_cpu, "request {i}: who chooses");
        }
    }
}

#[test]
fn devices_are_named_in_a_list() {
    let named = |names: &[&str]| DeviceChoice::Gpus(names.iter().map(ToString::to_string).collect());
    let builder = |names: &[&str]| Engine::builder(Source::Default).device(named(names)).context(64);
    let first = &block_on(chaski::gpu::adapters())[0].name;
    let mut engine = build(builder(&["0", first]).shares(vec![2.0, 1.0]));
    assert_eq!(engine.gpus().len(), 2);
    assert!(!text(&mut engine, "Once", greedy(3)).expect("an answer").is_empty());
    assert_eq!(build(builder(&["0"])).gpus().len(), 1);
    let error = |builder: EngineBuilder| {
        let e = block_on(builder.build()).map(drop).expect_err("no such devices");
        chain(&e)
    };
    let e = error(builder(&["0", "no such device"]));
    assert!(e.contains("no such device"), "{e}");
    assert!(error(builder(&[])).ends_with("a model needs at least one device"));
    let e = error(builder(&["0", "0"]).shares(vec![1.0]));
    assert!(e.contains("the shares of 2 devices are [1.0]"), "{e}");
}

/// A stage is one submission, and the CPU waits once for each boundary and once for each token that goes back.
#[test]
fn the_cpu_waits_once_for_a_boundary_and_once_for_a_token() {
    let f = Fixture::load("llama-gqa-rope_freqs");
    let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
    let gpus = gpus(2, FeatureSet::Sg);
    let load = |target: &Target| {
        let mut r = block_on(Runner::load(&model, target, &config(None), |_| {})).expect("it fits");
        r.forget();
        r
    };
    let mut r = load(&Target::Gpus(gpus.clone()));
    let counts = || {
        let of = |gpu: &Arc<Gpu>| {
            let c = gpu.counters();
            (c.submits.load(Ordering::Relaxed), c.reads.load(Ordering::Relaxed))
        };
        [of(&gpus[0]), of(&gpus[1])]
    };
    let mut run = |rows: Vec<Row>, repeat: u32| {
        let before = counts();
        let n_planned = rows.len() as u32;
        r.submit(&Step { rows, repeat, n_planned, ..Step::default() }).expect("a step");
        let found = block_on(r.read()).expect("its tokens").chosen;
        let after = counts();
        (found, [0, 1].map(|d| (after[d].0 - before[d].0, after[d].1 - before[d].1)))
    };
    let row = |pos, input, want| Row { seq: 0, pos, components: None, input, want };
    let prompt = |want| -> Vec<Row> {
        let want = |i| if i == 8 { want } else { Want::Nothing };
        (0..9).map(|i| row(i as u32, Input::Token(f.tokens[i]), want(i))).collect()
    };
    let (mut found, waits) = run(prompt(Want::Choose), 1);
    // Submissions of prompts are cut to bounded times.
    assert_eq!(waits.map(|w| w.1), [1, 1], "waits of a prompt");
    let (next, waits) = run(vec![row(9, Input::Token(found[0]), Want::Choose)], 1);
    assert_eq!(waits, [(1, 1), (1, 1)], "(submissions, waits) of a known token");
    found.extend(next);
    // A chosen token goes to the first device with the outputs.
    let (next, waits) = run(vec![row(10, Input::Chosen, Want::Choose)], 1);
    assert_eq!(waits, [(1, 1), (1, 1)], "of a chosen token");
    found.extend(next);
    let (next, waits) = run(vec![row(11, Input::Chosen, Want::Choose)], 4);
    assert_eq!(waits, [(4, 4), (4, 4)], "of four tokens");
    found.extend(next);
    // As with one device, the first prompts tell how long the next may be.
    let sizes = RunnerConfig { n_ctx: 512, chunk: 512, ..config(None) };
    let mut r = block_on(Runner::load(&model, &Target::Gpus(gpus.clone()), &sizes, |_| {})).expect("it fits");
    r.set_prompt_bound(Duration::from_secs(3600));
    let first = r.rows(true);
    assert!(first < 512, "{first} rows of an unknown device");
    r.submit(&Step { rows: prompt(Want::Choose), repeat: 1, n_planned: 9, ..Step::default() })
        .expect("a step");
    block_on(r.read()).expect("its token");
    assert_eq!(r.rows(true), 512);
    let before = counts();
    r.submit(&Step { rows: prompt(Want::Choose), repeat: 1, n_planned: 9, ..Step::default() })
        .expect("a step");
    block_on(r.read()).expect("its token");
    let after = counts();
    assert_eq!([0, 1].map(|d| after[d].0 - before[d].0), [1, 1], "a submission for each stage");
    // The same tokens as on one device.
    let mut one = load(&Target::Gpu(gpus[1].clone()));
    block_on(one.prefill(&f.tokens[..9])).expect("tokens run");
    assert_eq!(found, block_on(one.greedy(7)).expect("tokens"));
}
