//! CPU offload of experts: the same bits as with all experts on the device, and no more reads than needed.

use std::sync::{Arc, Mutex};

use chaski::errors::{ModelError, RuntimeError};
use chaski::gguf::{ByteSource, MemorySource, OwnedValue, SourceError};
use chaski::gpu::GpuOptions;
use chaski::kernels::FeatureSet;
use chaski::options::Speculation;
use chaski::steps::{Runner, RunnerConfig};
use chaski::{DeviceChoice, Engine, EngineBuilder, Error, GenerateOptions, KvType, SamplerParams, Source};
use chaski_models::serve::{Answer, Request};
use chaski_models::{Model, Target};
use chaski_runtime::gpu::{ExpertReads, Gpu};
use chaski_runtime::plan::PlanError;

use crate::archs::{Fixture, open, wanted};
use crate::common::{
    Failures, Timed, block_on, build, chain, full, greedy, left_for_full, nmse, one_in, say, shared_gpu,
};
use crate::serve::outcome;

/// Every family with experts.
const FIXTURES: &[&str] = &[
    "llama-moe",
    "deepseek2-moe",
    "gemma4-moe",
    "glm4moe-moe",
    "gpt-oss-moe",
    "granitemoe-moe",
    "olmoe-moe",
    "phimoe-moe",
    "qwen2moe-moe",
    "qwen3moe-moe",
    "lfm2moe-choice",
    "qwen35moe-moe",
    "qwen3next-moe",
    "nemotron_h_moe-plain",
    "nemotron_h_moe-latent",
];

/// Experts per layer here; the fixtures have two, both used by every token.
pub(crate) const N_EXPERT: u32 = 8;
/// Experts per token.
pub(crate) const N_USED: u32 = 2;

/// A fixture with more experts, and further changes.
pub(crate) fn with_experts(f: &Fixture, n_expert: u32, n_used: u32, n_ff: Option<u32>) -> Vec<u8> {
    f.gguf(true, &|metadata, tensors| set_experts(metadata, tensors, n_expert, n_used, n_ff))
}

/// Changes metadata and shapes to this number of experts.
pub(crate) fn set_experts(
    metadata: &mut [(String, OwnedValue)],
    tensors: &mut [(String, Vec<u64>)],
    n_expert: u32,
    n_used: u32,
    n_ff: Option<u32>,
) {
    for (key, value) in metadata.iter_mut() {
        let set = |n: u32| OwnedValue::from(n);
        match key.rsplit('.').next() {
            Some("expert_count") => *value = set(n_expert),
            Some("expert_used_count") => *value = set(n_used),
            Some("expert_feed_forward_length") if n_ff.is_some() => *value = set(n_ff.unwrap_or(0)),
            _ => {}
        }
    }
    for (name, ne) in tensors.iter_mut() {
        let ends = ["ffn_gate_inp.weight", "ffn_gate_inp.bias", "exp_probs_b.bias"];
        if name.contains("_exps.") || ends.iter().any(|end| name.ends_with(end)) {
            *ne.last_mut().expect("a shape") = n_expert.into();
        }
        let side = if name.contains("ffn_up_exps") { 1 } else { 0 };
        if let (Some(n_ff), true) = (n_ff, name.contains("ffn_up_exps") || name.contains("ffn_down_exps")) {
            ne[side] = n_ff.into();
        }
    }
}

pub(crate) fn config(slots: Option<u32>) -> RunnerConfig {
    RunnerConfig {
        n_ctx: 64,
        kv: KvType::F32,
        chunk: 64,
        experts_on_cpu: if slots.is_some() { u32::MAX } else { 0 },
        expert_slots: slots.unwrap_or(0),
        ..RunnerConfig::default()
    }
}

fn load<S: ByteSource + Send + Sync + 'static>(
    model: &Model<S>,
    gpu: &Arc<Gpu>,
    config: &RunnerConfig,
) -> Runner {
    let loaded = block_on(Runner::load(model, &Target::Gpu(gpu.clone()), config, |_| {}));
    loaded.unwrap_or_else(|e| panic!("{}", chain(&e)))
}

fn reads(r: &Runner) -> ExpertReads {
    r.gpu().and_then(|g| g.expert_reads()).expect("CPU-offloaded experts")
}

pub(crate) fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|v| v.to_bits()).collect()
}

/// Logits of the tokens at once, by default not in pieces, and one by one, and the last ones as in decode.
pub(crate) fn logits(r: &mut Runner, tokens: &[u32]) -> Vec<(String, Vec<u32>)> {
    let mut out = Vec::new();
    for (n, piece) in one_in(2, [(48, 48), (20, 7), (9, 1)]) {
        r.truncate(0);
        let found = block_on(r.eval_all(&tokens[..n], piece)).expect("tokens run");
        out.push((format!("{n} tokens in pieces of {piece}"), bits(&found)));
    }
    // Rewind, and continue.
    r.truncate(4);
    for part in [&tokens[4..30], &tokens[30..31]] {
        block_on(r.prefill(part)).expect("tokens run");
        out.push((
            format!("{} tokens after others", part.len()),
            bits(&block_on(r.logits()).expect("logits")),
        ));
    }
    r.truncate(0);
    let hidden = block_on(r.eval_hidden(&tokens[..11])).expect("tokens run");
    out.push(("what logits are made of".into(), bits(&hidden)));
    out
}

pub(crate) fn compare(
    failures: &mut Failures,
    case: &str,
    found: &[(String, Vec<u32>)],
    expected: &[(String, Vec<u32>)],
) {
    for ((what, found), (_, expected)) in found.iter().zip(expected) {
        failures.check(found == expected, || format!("{case}, {what}: other bits"));
    }
}

#[test]
fn logits_are_the_same_bits_wherever_experts_are() {
    let _t = Timed::new("streaming, all families");
    let mut failures = Failures::default();
    for (nth, name) in FIXTURES.iter().copied().enumerate().filter(|(_, n)| wanted(n)) {
        // By default a plain one, and one with scales and a fused gate-up matrix. The next test but one has norms of
        // heads, `steps` biases.
        if !full() && !["llama-moe", "gemma4-moe"].contains(&name) {
            continue;
        }
        let f = Fixture::load(name);
        let model = open(with_experts(&f, N_EXPERT, N_USED, None)).expect("a fixture is a model");
        // Each on one kind of device; both see every kind of layer.
        let gpu = shared_gpu([FeatureSet::Sg, FeatureSet::Base][nth % 2], false);
        let mut all = load(&model, &gpu, &config(None));
        let expected = logits(&mut all, &f.tokens);
        assert!(all.gpu().expect("a GPU").expert_reads().is_none(), "{name}: experts are on the device");
        let mut counts = Vec::new();
        let some = [3, N_USED, N_EXPERT];
        for slots in some.into_iter().take(if full() || name == "llama-moe" { 3 } else { 1 }) {
            let mut r = load(&model, &gpu, &config(Some(slots)));
            let less = r.memory().n_byte() < all.memory().n_byte();
            failures.check(less || slots == N_EXPERT, || format!("{name}, {slots} slots: no less memory"));
            assert_eq!(reads(&r), ExpertReads::default(), "{name}: nothing is read before it is wanted");
            let case = format!("{name}, {slots} slots");
            compare(&mut failures, &case, &logits(&mut r, &f.tokens), &expected);
            let first = reads(&r);
            compare(&mut failures, &format!("{case}, again"), &logits(&mut r, &f.tokens), &expected);
            let (wanted, read) = (reads(&r).wanted - first.wanted, reads(&r).read - first.read);
            failures.check(first.read > 0 && first.n_byte > 0 && first.wanted >= first.read, || {
                format!("{case}: {first:?}")
            });
            failures
                .check((slots == N_EXPERT) == (read == 0), || format!("{case}: {read} of {wanted} again"));
            failures.check((slots == N_EXPERT) == (first.in_rounds == 0), || format!("{case}: {first:?}"));
            counts.push(format!("{read}/{wanted} in {slots}"));
        }
        say(format!("{name:24} experts read of those wanted: {}", counts.join(", ")));
    }
    failures.conclude();
}

/// Slots in several buffers, and shares that are no whole number of layout steps.
#[test]
fn places_lie_in_several_buffers_and_apart_where_they_must() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("streaming, layouts");
    let mut failures = Failures::default();
    let small = |n_byte| {
        let set = Some(FeatureSet::Sg);
        let options = GpuOptions { set, max_binding_bytes: Some(n_byte), ..GpuOptions::default() };
        Arc::new(block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver"))
    };
    let f = Fixture::load("llama-moe");
    let model = open(with_experts(&f, N_EXPERT, N_USED, None)).expect("a fixture is a model");
    let share =
        model.tensors().iter().find(|t| t.name.contains("ffn_down_exps")).expect("experts").n_byte / 8;
    // Two experts of gate and up, four of down.
    let gpu = small(4 * share + 4096);
    let expected = logits(&mut load(&model, &gpu, &config(None)), &f.tokens);
    for slots in [2, 5, 8] {
        let found = logits(&mut load(&model, &gpu, &config(Some(slots))), &f.tokens);
        // A token's sum over experts is accumulated buffer by buffer, so its order depends on the slots.
        for ((what, found), (_, expected)) in found.iter().zip(&expected) {
            let floats = |bits: &[u32]| bits.iter().map(|b| f32::from_bits(*b)).collect::<Vec<_>>();
            let e = nmse(&floats(found), &floats(expected));
            failures.check(e <= 1e-11, || format!("{slots} slots in buffers, {what}: {e:.1e}"));
        }
    }
    let f = Fixture::load("nemotron_h_moe-plain");
    for n_ff in [37, 30].into_iter().take(if full() { 2 } else { 1 }) {
        let model = open(with_experts(&f, N_EXPERT, N_USED, Some(n_ff))).expect("a fixture is a model");
        let gpu = shared_gpu(FeatureSet::Sg, false);
        let expected = logits(&mut load(&model, &gpu, &config(None)), &f.tokens);
        for slots in [2, 5] {
            let mut r = load(&model, &gpu, &config(Some(slots)));
            let case = format!("{slots} slots for {n_ff} rows");
            compare(&mut failures, &case, &logits(&mut r, &f.tokens), &expected);
        }
    }
    failures.conclude();
}

/// Some layers, and batched sequences.
#[test]
fn some_layers_stay_and_sequences_run_together() {
    let _t = Timed::new("streaming, sequences");
    let f = Fixture::load("qwen3moe-moe");
    let model = open(with_experts(&f, N_EXPERT, N_USED, None)).expect("a fixture is a model");
    let gpu = shared_gpu(FeatureSet::Sg, false);
    let run = |experts_on_cpu| {
        let config = RunnerConfig { experts_on_cpu, n_seq: 3, ..config(None) };
        let mut r = load(&model, &gpu, &config);
        for seq in 0..3 {
            r.select(seq);
            block_on(r.feed(&f.tokens[seq..10 + 5 * seq])).expect("tokens run");
        }
        let mut out = Vec::new();
        for t in &f.tokens[30..36] {
            let columns: Vec<(usize, u32)> = (0..3).map(|seq| (seq, *t + seq as u32)).collect();
            out.extend(block_on(r.eval_columns(&columns)).expect("three columns"));
        }
        (bits(&out), r.memory().n_byte(), r.gpu().and_then(|g| g.expert_reads()).map(|reads| reads.wanted))
    };
    let [none, one, all, more] = [0, 1, 2, 9].map(run);
    assert!(none.0 == one.0 && none.0 == all.0, "other bits");
    assert!(none.1 > one.1 && one.1 > all.1, "{} {} {} bytes", none.1, one.1, all.1);
    assert!(none.2.is_none() && one.2 < all.2, "{:?} {:?} {:?}", none.2, one.2, all.2);
    assert_eq!(all, more, "the model has two layers with experts");
}

/// A file whose reads can fail.
struct Faulty {
    file: MemorySource,
    /// Reads that still succeed.
    left: Arc<Mutex<usize>>,
}

impl ByteSource for Faulty {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        {
            let mut left = self.left.lock().expect("nobody panics with it");
            if *left == 0 {
                let source = "the disk is gone".into();
                return Err(SourceError::Other { name: self.file.name().into(), source });
            }
            *left -= 1;
        }
        self.file.read_at(offset, buf).await
    }
}

#[test]
fn a_read_that_fails_names_the_tensor_and_harms_nothing() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("streaming, reads that fail");
    // Without and with recurrent state.
    for name in one_in(2, ["llama-moe", "olmoe-moe", "qwen3next-moe", "lfm2moe-choice"]) {
        let f = Fixture::load(name);
        let file = MemorySource::new("faulty.gguf", with_experts(&f, N_EXPERT, N_USED, None));
        let left = Arc::new(Mutex::new(usize::MAX));
        let source = Faulty { file, left: left.clone() };
        let model =
            block_on(Model::open(source, |_: &str| unreachable!("it has one file"))).expect("a model");
        let gpu = shared_gpu(FeatureSet::Sg, false);
        let expected = logits(&mut load(&model, &gpu, &config(None)), &f.tokens);
        let mut r = load(&model, &gpu, &config(Some(3)));
        for n_good in [0, 1, 5, 8] {
            r.truncate(0);
            *left.lock().expect("nobody panics with it") = usize::MAX;
            block_on(r.feed(&f.tokens[..5])).expect("tokens run");
            *left.lock().expect("nobody panics with it") = n_good;
            // A prompt, then a token of an answer.
            for (n, tokens) in [(5, &f.tokens[5..30]), (5, &f.tokens[40..41])] {
                let e = block_on(r.prefill(tokens)).expect_err("the file cannot be read");
                let wrong = matches!(&e, ModelError::Runtime(RuntimeError::Tensor { tensor, .. }) if tensor.contains("_exps"));
                assert!(wrong && chain(&e).contains("the disk is gone"), "{name}, {n_good}: {}", chain(&e));
                assert_eq!(r.history().len(), n, "{name}, {n_good}");
            }
        }
        *left.lock().expect("nobody panics with it") = usize::MAX;
        let mut failures = Failures::default();
        compare(&mut failures, name, &logits(&mut r, &f.tokens), &expected);
        failures.conclude();
    }
}

fn engine(f: &Fixture, slots: Option<u32>) -> EngineBuilder {
    let bytes: &'static [u8] = with_experts(f, N_EXPERT, N_USED, None).leak();
    let source = Source::Bytes { name: "fixture.gguf".into(), bytes };
    let gpu = shared_gpu(FeatureSet::Sg, false);
    let builder = Engine::builder(source).gpu(gpu).context(64).chunk(64).sequences(3);
    match slots {
        Some(n) => builder.experts_on_cpu(u32::MAX).expert_slots(n),
        None => builder,
    }
}

fn answer(engine: &mut Engine, prompt: &[u32], options: GenerateOptions) -> Vec<u32> {
    let mut g = engine.generate_tokens(prompt, options).expect("a generation");
    while block_on(g.next()).expect("a piece").is_some() {}
    g.tokens().to_vec()
}

/// Every way to answer: sampled on the device, greedy and random, on the CPU with drafts; after saving a session; and
/// perplexity.
#[test]
fn answers_are_the_same_wherever_experts_are() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("streaming, answers");
    for name in ["gpt-oss-moe", "qwen3next-moe"] {
        let f = Fixture::load(name);
        let drawn = SamplerParams { seed: Some(7), temp: 2.0, ..SamplerParams::default() };
        let ways = [
            ("greedy", greedy(20)),
            ("in groups", GenerateOptions { interval: 8, ..greedy(20) }),
            ("drawn", GenerateOptions { sampler: drawn, ..greedy(20) }),
            ("guessed", GenerateOptions { speculate: Some(Speculation::default()), ..greedy(20) }),
            ("with probabilities", GenerateOptions { logprobs: Some(1), ..greedy(8) }),
        ];
        let all = |slots: Option<u32>| {
            let mut e = build(engine(&f, slots));
            let mut out = Vec::new();
            for (what, options) in &ways {
                out.push((*what, answer(&mut e, &f.tokens[..17], options.clone())));
            }
            let session = block_on(e.save()).expect("a session");
            let last = out.last().map(|(_, tokens): &(&str, Vec<u32>)| tokens.clone()).unwrap_or_default();
            let next = [&f.tokens[..17], &last, &f.tokens[..3]].concat();
            out.push(("after the others", answer(&mut e, &next, greedy(5))));
            e.clear();
            block_on(e.restore(&session)).expect("the session");
            out.push(("after a session", answer(&mut e, &next, greedy(5))));
            e.runner().truncate(0);
            block_on(e.runner().prefill(&f.tokens[..9])).expect("tokens run");
            out.push(("on the device alone", block_on(e.runner().greedy(12)).expect("tokens")));
            out
        };
        let expected = all(None);
        assert!(expected.iter().all(|(_, tokens)| tokens.len() >= 5), "{name}: {expected:?}");
        for slots in [N_USED, 5, N_EXPERT].into_iter().take(if full() { 3 } else { 1 }) {
            assert_eq!(all(Some(slots)), expected, "{name}, {slots} slots");
        }
    }
}

/// Several concurrent requests, greedy and sampled, each with the same answer as with all experts on the device.
#[test]
fn a_service_answers_the_same_wherever_experts_are() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("streaming, serve");
    for name in ["gpt-oss-moe", "qwen3next-moe"].into_iter().take(if full() { 2 } else { 1 }) {
        let f = Fixture::load(name);
        let drawn = SamplerParams { seed: Some(7), temp: 2.0, ..SamplerParams::default() };
        let all = |slots: Option<u32>| {
            let handle = build(engine(&f, slots)).spawn().expect("a thread");
            let ask = |i: usize| {
                let options = if i % 2 == 0 {
                    greedy(6 + i)
                } else {
                    GenerateOptions { sampler: drawn.clone(), ..greedy(6 + i) }
                };
                handle
                    .generate_tokens(Request::new(f.tokens[i..9 + 4 * i].to_vec(), options))
                    .expect("it fits")
            };
            let answers: Vec<Answer> = (0..5).map(ask).collect();
            answers.into_iter().map(|a| outcome(a).tokens).collect::<Vec<_>>()
        };
        let expected = all(None);
        assert!(expected.iter().all(|tokens| tokens.len() >= 5), "{name}: {expected:?}");
        for slots in [N_USED, 5] {
            assert_eq!(all(Some(slots)), expected, "{name}, {slots} slots");
        }
    }
}

#[test]
fn nothing_is_created_while_experts_come_and_go() {
    let _t = Timed::new("streaming, nothing is created");
    let f = Fixture::load("gpt-oss-moe");
    // Other tests create resources on a shared device.
    let options = GpuOptions { set: Some(FeatureSet::Sg), ..GpuOptions::default() };
    let gpu = Arc::new(block_on(Gpu::open(&options)).expect("a GPU or a software Vulkan driver"));
    let mut e = build(engine(&f, Some(3)).gpu(gpu.clone()));
    answer(&mut e, &f.tokens[..9], greedy(2));
    let (objects, memory, before) =
        (gpu.counters().objects(), e.memory(), e.expert_reads().expect("experts"));
    answer(&mut e, &f.tokens[3..30], greedy(20));
    block_on(e.runner().eval_all(&f.tokens[..3], 2)).expect("tokens run");
    let after = e.expert_reads().expect("experts");
    assert!(after.read > before.read && after.in_rounds > before.in_rounds, "{before:?}, {after:?}");
    assert_eq!(gpu.counters().objects(), objects, "buffers, groups, pipelines");
    assert_eq!(e.memory(), memory);
}

#[test]
fn memory_is_told_before_anything_is_loaded() {
    let f = Fixture::load("gpt-oss-moe");
    for slots in [None, Some(2), Some(5), Some(8)] {
        let e = build(engine(&f, slots));
        let config = RunnerConfig { n_seq: 3, kv: KvType::Auto, ..config(slots) };
        let caps = e.gpu().expect("a GPU").caps().clone();
        let told = block_on(chaski::tools::memory_need(e.model(), &config, Some(&caps))).expect("a plan");
        assert_eq!(told, e.memory(), "{slots:?}");
    }
}

#[test]
fn cpu_memory_is_known_before_loading() {
    for (name, kv) in [("gpt-oss-moe", KvType::Auto), ("qwen35-dense", "q8_0/q4_0".parse().expect("types"))] {
        let f = Fixture::load(name);
        let bytes: &'static [u8] = with_experts(&f, N_EXPERT, N_USED, None).leak();
        let source = Source::Bytes { name: "fixture.gguf".into(), bytes };
        let builder = Engine::builder(source).device(DeviceChoice::Cpu).context(64).sequences(2);
        let e = build(builder.kv(kv));
        let config = RunnerConfig { n_seq: 2, kv, ..config(None) };
        let told = block_on(chaski::tools::memory_need(e.model(), &config, None)).expect("a graph");
        assert_eq!(told, e.memory(), "{name}");
    }
}

#[test]
fn a_device_that_is_lost_while_experts_stream_is_an_error_of_its_own() {
    let f = Fixture::load("olmoe-moe");
    let bytes: &'static [u8] = with_experts(&f, N_EXPERT, N_USED, None).leak();
    let source = Source::Bytes { name: "fixture.gguf".into(), bytes };
    let builder = Engine::builder(source).device(DeviceChoice::Gpu(None)).context(64).experts_on_cpu(1);
    let mut e = build(builder);
    let expected = answer(&mut e, &f.tokens[..9], greedy(6));
    e.gpu().expect("a GPU").destroy();
    let lost = block_on(e.runner().prefill(&f.tokens[20..24])).map_err(Error::from).expect_err("it is gone");
    assert!(lost.is_device_lost(), "{}", chain(&lost));
    block_on(e.rebuild()).expect("the adapter is still there");
    assert_eq!(answer(&mut e, &f.tokens[..9], greedy(6)), expected);
}

#[test]
fn what_cannot_be_is_an_error_that_says_so() {
    let plan_error = |builder: EngineBuilder| match block_on(builder.build()).map(drop) {
        Err(Error::Model(ModelError::Runtime(RuntimeError::Plan(e)))) => e,
        other => panic!("an error of the plan, not {other:?}"),
    };
    for device in [DeviceChoice::Gpu(None), DeviceChoice::Cpu] {
        let e = plan_error(crate::common::default_engine().device(device).experts_on_cpu(1));
        assert!(matches!(e, PlanError::NoExperts), "{e}");
    }
    let f = Fixture::load("olmoe-moe");
    for slots in [1, 9] {
        let e = plan_error(engine(&f, Some(slots)));
        assert!(
            matches!(e, PlanError::ExpertSlots { least: N_USED, most: N_EXPERT, found } if found == slots),
            "{e}"
        );
    }
    let mut e = build(engine(&f, Some(2)));
    let second = std::time::Duration::from_secs(1);
    let profile = block_on(e.runner().profile(1, 0, 1)).map(drop);
    let tuned = block_on(e.runner().tune(second, |_| {})).map(drop);
    for (what, e) in [("profile", profile), ("tuning", tuned)] {
        let found = e.expect_err(what);
        let runtime =
            matches!(found, ModelError::Runtime(RuntimeError::NeedsExperts { what: w }) if w.contains(what));
        assert!(runtime, "{found}");
    }
}
