//! Experts that others compute: the bits of the model alone, in any division, and after any failure.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use chaski::errors::RuntimeError;
use chaski::experts::{
    AbsentExperts, ExpertCall, ExpertError, ExpertFuture, ExpertWorker, Experts, GpuExpertWorker, Home, Pair,
    WorkerConfig,
};
use chaski::gguf::{GgmlType, MemorySource};
use chaski::gpu::Gpu;
use chaski::kernels::{ActivationPrecision, FeatureSet};
use chaski::steps::{Runner, RunnerConfig};
use chaski::{DeviceChoice, Engine, Finish, KvType, Source};
use chaski_models::{Model, Target, Threads};

use crate::archs::{Fixture, open, wanted};
use crate::common::{
    Failures, Timed, block_on, build, chain, fixture, full, greedy, in_turns, left_for_full, say, shared_gpu,
};
use crate::streaming::{N_EXPERT, N_USED, bits, with_experts};

const ONE: Threads = Threads { decode: 1, batch: 1 };

/// Where the experts are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Division {
    /// All are away.
    Away,
    /// Every third is here, in other layers others.
    Mixed,
    /// None is away.
    Here,
}

impl Division {
    fn home(self, layer: u16, expert: u16) -> Home {
        let is_here = match self {
            Division::Away => false,
            Division::Mixed => (layer + expert) % 3 == 0,
            Division::Here => true,
        };
        if is_here { Home::Here } else { Home::Away }
    }
}

/// Counts of calls.
#[derive(Default)]
struct Seen {
    n_call: AtomicU64,
    n_pair: AtomicU64,
    /// Calls to fail from now on.
    fail: AtomicU32,
    /// Calls whose future was dropped before it was ready.
    n_dropped: AtomicU64,
    /// Calls to leave without an answer from now on.
    stall: AtomicU32,
}

/// A worker of either kind.
enum Worker {
    Cpu(Box<ExpertWorker>),
    Gpu(Box<GpuExpertWorker>),
}

impl Worker {
    async fn compute(&mut self, call: &ExpertCall) -> Result<Vec<f32>, ExpertError> {
        match self {
            Worker::Cpu(worker) => worker.compute(call),
            Worker::Gpu(worker) => worker.compute(call).await.map_err(|e| match e {
                RuntimeError::Experts(e) => e,
                e => ExpertError::Failed { layer: call.layer, source: e.into() },
            }),
        }
    }
}

/// Workers in this process, each with some of the experts.
struct Others {
    workers: Vec<Arc<Mutex<Worker>>>,
    division: Division,
    seen: Arc<Seen>,
}

fn owner(layer: u16, expert: u16, n: usize) -> usize {
    usize::from(layer + 3 * expert) % n
}

impl Others {
    /// `n` workers that together have all experts.
    fn new(model: &Model<MemorySource>, n: usize, division: Division, config: WorkerConfig) -> Others {
        let graph = block_on(model.graph(64)).expect("a graph");
        let mut workers: Vec<ExpertWorker> =
            (0..n).map(|_| ExpertWorker::new(&graph, config).expect("a worker")).collect();
        for layer in graph.experts() {
            for expert in 0..layer.n_expert as u16 {
                let worker = &mut workers[owner(layer.layer, expert, n)];
                block_on(worker.add(layer.layer, expert, model)).expect("an expert");
            }
        }
        let workers = workers.into_iter().map(|w| Arc::new(Mutex::new(Worker::Cpu(Box::new(w))))).collect();
        Others { workers, division, seen: Arc::default() }
    }

    /// The same on a device, for a model with this configuration.
    fn on_gpu(
        model: &Model<MemorySource>,
        n: usize,
        division: Division,
        (gpu, config): (&Arc<Gpu>, &RunnerConfig),
    ) -> Others {
        let graph = block_on(model.graph(64)).expect("a graph");
        let slots = RunnerConfig { expert_slots: N_EXPERT, ..config.clone() };
        let plan = slots.plan_for(model, gpu.caps());
        let mut workers: Vec<GpuExpertWorker> = (0..n)
            .map(|_| block_on(GpuExpertWorker::new(gpu.clone(), &graph, &plan)).expect("a worker"))
            .collect();
        for layer in graph.experts() {
            for expert in 0..layer.n_expert as u16 {
                let worker = &mut workers[owner(layer.layer, expert, n)];
                block_on(worker.add(layer.layer, expert, model)).expect("an expert");
            }
        }
        let workers = workers.into_iter().map(|w| Arc::new(Mutex::new(Worker::Gpu(Box::new(w))))).collect();
        Others { workers, division, seen: Arc::default() }
    }
}

/// Counts a future that is dropped before its end.
struct Ended(Arc<Seen>, bool);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.n_dropped.fetch_add(u64::from(!self.1), Ordering::Relaxed);
    }
}

fn take(n: &AtomicU32) -> bool {
    n.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
}

impl Experts for Others {
    fn homes(&mut self, layer: u16, wanted: &[u16]) -> Vec<Home> {
        assert!(wanted.is_sorted_by(|a, b| a < b), "distinct and ascending: {wanted:?}");
        wanted.iter().map(|e| self.division.home(layer, *e)).collect()
    }

    fn call(&mut self, call: ExpertCall) -> ExpertFuture {
        let (seen, workers) = (self.seen.clone(), self.workers.clone());
        seen.n_call.fetch_add(1, Ordering::Relaxed);
        seen.n_pair.fetch_add(call.pairs.len() as u64, Ordering::Relaxed);
        assert!(call.pairs.is_sorted_by(|a, b| a < b), "pairs are distinct and in order");
        let n_col = call.pairs.iter().map(|p| p.column).collect::<BTreeSet<u16>>().len();
        assert!(n_col as u32 <= call.step_columns && call.x.len() % n_col == 0, "columns that have pairs");
        let (fails, stalls) = (take(&seen.fail), take(&seen.stall));
        let ended = Ended(seen, false);
        Box::pin(async move {
            let mut ended = ended;
            let mut n_pending = if stalls { u32::MAX } else { 2 };
            poll_fn(|cx| {
                n_pending = n_pending.saturating_sub(u32::from(!stalls));
                cx.waker().wake_by_ref();
                if n_pending > 0 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            ended.1 = true;
            if fails {
                return Err(ExpertError::Failed { layer: call.layer, source: "cut off".into() });
            }
            let width = call.width as usize;
            let mut out = vec![f32::NAN; call.n_value()];
            for (nth, worker) in workers.iter().enumerate() {
                let is_own = |p: &Pair| owner(call.layer, p.expert, workers.len()) == nth;
                let own: Vec<usize> = (0..call.pairs.len()).filter(|i| is_own(&call.pairs[*i])).collect();
                let pairs = own.iter().map(|i| call.pairs[*i]).collect();
                let part = ExpertCall { pairs, ..call.clone() };
                let mut worker = worker.lock().expect("no panic");
                let rows = block_on(worker.compute(&part))?;
                for (i, row) in own.into_iter().zip(rows.chunks_exact(width)) {
                    out[i * width..][..width].copy_from_slice(row);
                }
            }
            Ok(out)
        })
    }
}

pub(crate) fn config() -> RunnerConfig {
    RunnerConfig { n_ctx: 64, n_seq: 3, kv: KvType::F32, chunk: 64, threads: ONE, ..RunnerConfig::default() }
}

pub(crate) fn worker_config() -> WorkerConfig {
    WorkerConfig { threads: ONE, ..WorkerConfig::default() }
}

pub(crate) fn load(model: &Model<MemorySource>, config: &RunnerConfig) -> Runner {
    let loaded = block_on(Runner::load(model, &Target::Cpu, config, |_| {}));
    loaded.unwrap_or_else(|e| panic!("{}", chain(&e)))
}

/// Logits of prompts of several lengths, of decode, of batches of three sequences, and tokens chosen greedily.
pub(crate) fn results(r: &mut Runner, tokens: &[u32]) -> Vec<(String, Vec<u32>)> {
    let mut out = Vec::new();
    for seq in 0..3 {
        r.select(seq);
        r.truncate(0);
    }
    r.select(0);
    for (n, piece) in [(1, 1), (5, 5), (21, 8), (33, 33)] {
        r.truncate(0);
        let found = block_on(r.eval_all(&tokens[..n], piece)).expect("tokens run");
        out.push((format!("{n} tokens in pieces of {piece}"), bits(&found)));
    }
    // A rewind, and decode.
    r.truncate(6);
    for i in 6..10 {
        let found = block_on(r.eval_all(&tokens[i..=i], 1)).expect("a token runs");
        out.push((format!("token {i}"), bits(&found)));
    }
    for seq in [1, 2] {
        r.select(seq);
        block_on(r.feed(&tokens[..2 * seq])).expect("tokens run");
    }
    for i in 0..3 {
        let columns = [(0, tokens[10 + i]), (1, tokens[2 + i]), (2, tokens[4 + i]), (2, tokens[5 + i])];
        let found = block_on(r.eval_columns(&columns)).expect("three sequences");
        out.push((format!("batch {i} of three sequences"), bits(&found)));
    }
    r.select(1);
    block_on(r.prefill(&tokens[5..6])).expect("a token runs");
    out.push(("greedy".into(), block_on(r.greedy(5)).expect("five tokens")));
    out
}

fn compare(
    failures: &mut Failures,
    case: &str,
    found: &[(String, Vec<u32>)],
    expected: &[(String, Vec<u32>)],
) {
    for ((what, found), (_, expected)) in found.iter().zip(expected) {
        failures.check(found == expected, || format!("{case}, {what}: other bits"));
    }
}

/// All fixtures of decoders with experts.
pub(crate) fn names() -> Vec<&'static str> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(fixture("archs")).expect("fixtures") {
        let path = file.expect("a file").path();
        let is_spec = path.extension().is_some_and(|e| e == "json");
        if is_spec && std::fs::read_to_string(&path).expect("a fixture").contains("_exps.weight") {
            let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
            found.push(&*Box::leak(name.to_owned().into_boxed_str()));
        }
    }
    found.sort_unstable();
    found
}

/// The fixture with eight experts of which a token uses two, or as it is where the family does not allow that.
pub(crate) fn model_of(f: &Fixture) -> (Model<MemorySource>, bool) {
    if let Ok(model) = open(with_experts(f, N_EXPERT, N_USED, None))
        && block_on(model.graph(64)).is_ok()
    {
        return (model, true);
    }
    (open(f.gguf(true, &|_, _| {})).expect("a fixture is a model"), false)
}

#[test]
fn every_familys_logits_are_the_same_bits_wherever_experts_are() {
    let _t = Timed::new("experts elsewhere, all families");
    let mut failures = Failures::default();
    let (mut n_name, mut n_more) = (0, 0);
    for (nth, name) in names().into_iter().enumerate().filter(|(_, name)| wanted(name)) {
        let f = Fixture::load(name);
        let (model, has_more) = model_of(&f);
        n_name += 1;
        n_more += usize::from(has_more);
        let alone = results(&mut load(&model, &config()), &f.tokens);
        // Loaded with all experts, where any can be here, or without.
        let none = RunnerConfig { absent_experts: AbsentExperts::All, ..config() };
        let ways = [
            (1, Division::Away, none.clone()),
            (2, Division::Mixed, config()),
            (4, Division::Away, config()),
            (4, Division::Here, config()),
        ];
        let ways = if full() { ways.to_vec() } else { in_turns(nth, &ways[..3]) };
        for (n, division, config) in ways {
            let case = format!("{name}, {n} workers, {division:?}, {:?} absent", config.absent_experts);
            let others = Others::new(&model, n, division, worker_config());
            let seen = others.seen.clone();
            let mut r = load(&model, &config);
            r.set_experts(Some(Box::new(others))).expect("experts elsewhere");
            let found = results(&mut r, &f.tokens);
            compare(&mut failures, &case, &found, &alone);
            let n_call = seen.n_call.load(Ordering::Relaxed);
            failures
                .check((n_call > 0) == (division != Division::Here), || format!("{case}: {n_call} calls"));
        }
    }
    assert!(!full() || (n_name > 40 && n_more > 20), "{n_more} of {n_name} families have eight experts");
    say(format!("{n_name} fixtures, {n_more} of them with eight experts"));
    failures.conclude();
}

/// Formats with and without tiles, and the references.
#[test]
fn experts_of_every_format_are_the_same_bits_elsewhere() {
    let _t = Timed::new("experts elsewhere, formats");
    let mut failures = Failures::default();
    let types = [
        GgmlType::Q4_K,
        GgmlType::Q6_K,
        GgmlType::Q8_0,
        GgmlType::Q4_0,
        GgmlType::MXFP4,
        GgmlType::IQ4_XS,
        GgmlType::BF16,
        GgmlType::F32,
    ];
    let f = Fixture::load("gpt-oss-moe");
    for ty in types {
        let is_expert = |name: &str| name.contains("_exps.weight");
        let of = |name: &str, ne: &[u64]| {
            let fits = is_expert(name) && ne[0] % ty.block_len() as u64 == 0;
            if fits { ty } else { GgmlType::F32 }
        };
        let edit = |metadata: &mut Vec<_>, tensors: &mut Vec<_>| {
            crate::streaming::set_experts(metadata, tensors, N_EXPERT, N_USED, None);
        };
        let model = open(f.gguf_in(&of, &edit)).expect("a model");
        let has_type = model.tensors().iter().any(|t| t.ty == ty);
        failures.check(has_type, || format!("{ty}: no expert has the type"));
        for (repack, in_16_bits) in [(true, true), (false, true), (false, false)] {
            if !in_16_bits && !full() && ty != GgmlType::MXFP4 {
                continue;
            }
            let inputs = (!in_16_bits).then_some(ActivationPrecision::F32);
            let config = RunnerConfig { repack, inputs, ..config() };
            let alone = results(&mut load(&model, &config), &f.tokens);
            let worker = WorkerConfig { repack, inputs_in_16_bits: in_16_bits, ..worker_config() };
            for division in [Division::Away, Division::Mixed] {
                let mut r = load(&model, &config);
                let others = Others::new(&model, 2, division, worker);
                r.set_experts(Some(Box::new(others))).expect("experts elsewhere");
                let case = format!("{ty}, {division:?}, repack {repack}, 16 bits {in_16_bits}");
                compare(&mut failures, &case, &results(&mut r, &f.tokens), &alone);
            }
        }
    }
    failures.conclude();
}

/// With and without recurrent state, which a step that fails has changed.
#[test]
fn a_failed_or_dropped_step_can_be_repeated() {
    let mut failures = Failures::default();
    for name in ["qwen3moe-moe", "qwen3next-moe"] {
        let f = Fixture::load(name);
        let (model, _) = model_of(&f);
        let alone = results(&mut load(&model, &config()), &f.tokens);
        let others = Others::new(&model, 2, Division::Away, worker_config());
        let seen = others.seen.clone();
        let mut r = load(&model, &config());
        r.set_experts(Some(Box::new(others))).expect("experts elsewhere");
        let tokens = &f.tokens;
        block_on(r.prefill(&tokens[..9])).expect("tokens run");
        let before = r.history().to_vec();
        seen.fail.store(1, Ordering::Relaxed);
        let e = block_on(r.eval_all(&tokens[9..14], 5)).expect_err("a call fails");
        assert_eq!(chain(&e), "layer 0 of experts: no result from elsewhere: cut off", "{name}");
        assert_eq!(r.history(), before);
        // The second layer never answers: the future is dropped, which drops the call.
        let n_dropped = seen.n_dropped.load(Ordering::Relaxed);
        seen.stall.store(1, Ordering::Relaxed);
        {
            let mut future = Box::pin(r.eval_all(&tokens[9..14], 5));
            let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
            for _ in 0..20 {
                assert!(future.as_mut().poll(cx).is_pending(), "{name}: nobody answers");
            }
        }
        assert_eq!(seen.n_dropped.load(Ordering::Relaxed), n_dropped + 1, "{name}: the call is cancelled");
        let found = bits(&block_on(r.eval_all(&tokens[9..21], 6)).expect("tokens run"));
        let mut whole = load(&model, &config());
        block_on(whole.prefill(&tokens[..9])).expect("tokens run");
        let expected = bits(&block_on(whole.eval_all(&tokens[9..21], 6)).expect("tokens run"));
        assert_eq!(found, expected, "{name}: the sequence went on");
        compare(&mut failures, name, &results(&mut r, tokens), &alone);
    }
    failures.conclude();
}

#[test]
fn experts_are_added_and_removed_one_by_one() {
    let f = Fixture::load("gpt-oss-moe");
    let (model, _) = model_of(&f);
    let graph = block_on(model.graph(64)).expect("a graph");
    let mut worker = ExpertWorker::new(&graph, worker_config()).expect("a worker");
    let layer = worker.layers()[0].clone();
    let (n_in, width) = layer.widths(&graph);
    let x: Vec<f32> = (0..n_in).map(|i| (i as f32 * 0.37).sin()).collect();
    let pair = |expert, column, slot| Pair { expert, column, slot };
    let call = |pairs: &[Pair]| ExpertCall {
        layer: 0,
        width,
        step_columns: 1,
        x: x.clone(),
        pairs: pairs.to_vec(),
        weights: Vec::new(),
    };
    assert_eq!(worker.n_byte(), 0);
    let missing = worker.compute(&call(&[pair(3, 0, 0)])).expect_err("nothing is loaded").to_string();
    assert_eq!(missing, "layer 0 of experts: expert 3 is not loaded here");
    for expert in [3, 5] {
        block_on(worker.add(0, expert, &model)).expect("an expert");
    }
    assert!(worker.has(0, 3) && worker.has(0, 5) && !worker.has(0, 4) && !worker.has(1, 3));
    let two = worker.n_byte();
    let both = worker.compute(&call(&[pair(3, 0, 1), pair(5, 0, 0)])).expect("two rows");
    assert_eq!(both.len(), 2 * width as usize);
    assert!(worker.remove(0, 3).expect("it was there") && !worker.remove(0, 3).expect("it was not"));
    assert_eq!(worker.n_byte() * 2, two);
    let one = worker.compute(&call(&[pair(5, 0, 0)])).expect("a row");
    assert_eq!(bits(&one), bits(&both[width as usize..]));
    assert_ne!(bits(&one), bits(&both[..width as usize]));
    // Calls that are none of the layer.
    let mut wrong = |call: ExpertCall| worker.compute(&call).expect_err("no call of the layer").to_string();
    let five = [pair(5, 0, 0)];
    let errors = [
        wrong(ExpertCall { layer: 9, ..call(&five) }),
        wrong(ExpertCall { width: 1, ..call(&five) }),
        wrong(ExpertCall { x: x[1..].to_vec(), ..call(&five) }),
        wrong(ExpertCall { step_columns: 0, ..call(&five) }),
        wrong(call(&[pair(5, 1, 0)])),
        wrong(call(&[pair(8, 0, 0)])),
        wrong(call(&[pair(5, 0, 2)])),
        wrong(call(&[pair(5, 0, 0), pair(5, 0, 0)])),
    ];
    let starts = [
        "layer 9 of experts: there is none",
        "layer 0 of experts, values per row of the result: found 1,",
        "layer 0 of experts, values of inputs:",
        "layer 0 of experts, columns of the call, in a step of fewer: found 1, expected 0",
        "layer 0 of experts, columns that pairs name: found 2, expected 1",
        "layer 0 of experts, experts that pairs name: found 9, expected 8",
        "layer 0 of experts, slots that pairs name: found 3, expected 2",
        "layer 0 of experts: pairs must be in ascending order, and pair 1 is not",
    ];
    for (found, start) in errors.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}");
    }
    for (layer, expert, start) in
        [(9, 0, "layer 9 of experts: there is none"), (0, 8, "layer 0 of experts, experts")]
    {
        let e = chain(&block_on(worker.add(layer, expert, &model)).expect_err("there is none"));
        assert!(e.starts_with(start), "{e}");
    }
}

/// A model on a device with workers on devices, against the same plan without others.
#[test]
fn experts_on_devices_are_the_same_bits_elsewhere() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("experts elsewhere, on devices");
    let mut failures = Failures::default();
    // With biases; by default recurrent state and experts with one product are tried on the CPU alone.
    let few = ["gpt-oss-moe"];
    let names = names().into_iter().filter(|n| wanted(n) && (full() || few.contains(n)));
    for (nth, name) in names.enumerate() {
        let f = Fixture::load(name);
        let (model, has_more) = model_of(&f);
        if !has_more {
            continue;
        }
        let gpu = shared_gpu([FeatureSet::Sg, FeatureSet::Base][nth % 2], false);
        let target = Target::Gpu(gpu.clone());
        let config = RunnerConfig { experts_away: true, expert_slots: 3, ..config() };
        let load = || {
            let loaded = block_on(Runner::load(&model, &target, &config, |_| {}));
            loaded.unwrap_or_else(|e| panic!("{name}: {}", chain(&e)))
        };
        let alone = results(&mut load(), &f.tokens);
        let ways = [(1, Division::Away), (2, Division::Mixed), (2, Division::Here)];
        for (n, division) in in_turns(nth, &ways) {
            let others = Others::on_gpu(&model, n, division, (&gpu, &config));
            let seen = others.seen.clone();
            let mut r = load();
            r.set_experts(Some(Box::new(others))).expect("the model was planned for it");
            let case = format!("{name}, {n} workers, {division:?}");
            compare(&mut failures, &case, &results(&mut r, &f.tokens), &alone);
            let n_call = seen.n_call.load(Ordering::Relaxed);
            failures
                .check((n_call > 0) == (division != Division::Here), || format!("{case}: {n_call} calls"));
            let reads = r.gpu().and_then(|g| g.expert_reads()).expect("experts are offloaded");
            failures
                .check((reads.read == 0) == (division == Division::Away), || format!("{case}: {reads:?}"));
            if division == Division::Away {
                seen.fail.store(1, Ordering::Relaxed);
                r.select(0);
                r.truncate(5);
                let e = block_on(r.eval_all(&f.tokens[5..9], 4)).expect_err("a call fails");
                assert_eq!(chain(&e), "layer 0 of experts: no result from elsewhere: cut off", "{name}");
                compare(
                    &mut failures,
                    &format!("{case}, after a failure"),
                    &results(&mut r, &f.tokens),
                    &alone,
                );
            }
        }
    }
    failures.conclude();
}

#[test]
fn workers_on_devices_hold_as_many_experts_as_they_have_room_for() {
    let f = Fixture::load("gpt-oss-moe");
    let (model, _) = model_of(&f);
    let graph = block_on(model.graph(64)).expect("a graph");
    let gpu = shared_gpu(FeatureSet::Sg, false);
    let config = RunnerConfig { experts_away: true, expert_slots: 2, ..config() };
    let plan = config.plan_for(&model, gpu.caps());
    let mut worker = block_on(GpuExpertWorker::new(gpu.clone(), &graph, &plan)).expect("a worker");
    let whole = graph.weights.iter().map(|w| w.n_byte()).sum::<u64>();
    assert!(worker.memory().items.iter().any(|item| item.what == "weights"));
    assert!(worker.memory().n_byte() < whole + (16 << 20), "nothing but experts and activations");
    assert_eq!((worker.n_slot(), worker.max_columns()), (2, 64));
    for expert in [1, 6] {
        block_on(worker.add(0, expert, &model)).expect("there is room for two");
    }
    let digests = [1, 6].map(|e| block_on(worker.canary(0, e)).expect("it is loaded"));
    assert_ne!(digests[0], digests[1]);
    let full = chain(&block_on(worker.add(0, 3, &model)).expect_err("there is no room for three"));
    assert_eq!(full, "layer 0 of experts, experts on the device: found 3, expected 2");
    assert!(worker.remove(0, 1).expect("it was there") && !worker.has(0, 1));
    let gone = chain(&block_on(worker.canary(0, 1)).expect_err("it is gone"));
    assert_eq!(gone, "layer 0 of experts: expert 1 is not loaded here");
    block_on(worker.add(0, 3, &model)).expect("there is room again");
    block_on(worker.add(1, 3, &model)).expect("every layer has its own");
    assert_eq!(block_on(worker.canary(0, 6)).expect("it is loaded"), digests[1]);
    // Another worker, other slots.
    let mut other = block_on(GpuExpertWorker::new(gpu, &graph, &plan)).expect("a worker");
    block_on(other.add(0, 1, &model)).expect("an expert");
    assert_eq!(block_on(other.canary(0, 1)).expect("it is loaded"), digests[0]);
    let layer = &graph.experts()[0];
    let many = ExpertCall { step_columns: 65, ..ExpertCall::canary(&graph, layer, 1, 2) };
    let e = chain(&block_on(other.compute(&many)).expect_err("there is no such plan"));
    assert_eq!(e, "layer 0 of experts, columns of the step: found 65, expected 64");
}

/// Canaries tell workers that compute the same bits from others, whatever their threads.
#[test]
fn canaries_are_equal_where_bits_are() {
    let f = Fixture::load("gpt-oss-moe");
    let (model, _) = model_of(&f);
    let graph = block_on(model.graph(64)).expect("a graph");
    let canary = |config: WorkerConfig, expert: u16| {
        let mut worker = ExpertWorker::new(&graph, config).expect("a worker");
        block_on(worker.add(0, expert, &model)).expect("an expert");
        worker.canary(0, expert).expect("it is loaded")
    };
    let first = canary(worker_config(), 3);
    let two = Threads { decode: 2, batch: 2 };
    assert_eq!(canary(WorkerConfig { threads: two, ..worker_config() }, 3), first);
    assert_eq!(canary(WorkerConfig { repack: false, map: false, ..worker_config() }, 3), first);
    assert_ne!(canary(worker_config(), 4), first);
    let references = WorkerConfig { repack: false, inputs_in_16_bits: false, ..worker_config() };
    assert_ne!(canary(references, 3), first, "sums in f64");
    let layer = &graph.experts()[0];
    let call = ExpertCall::canary(&graph, layer, 3, 2);
    call.check(&graph, layer).expect("a call of the layer");
    assert_eq!(call.x[..3].iter().map(|v| v.to_bits()).collect::<Vec<_>>(), CANARY);
}

/// The first inputs of every canary: other machines have to compute with the same.
const CANARY: [u32; 3] = [0x3d44_4150, 0xbd0c_3b10, 0xbf72_7746];

fn engine(bytes: &[u8], others: Others) -> Engine {
    let source = Source::Bytes { name: "fixture.gguf".into(), bytes: Box::leak(bytes.to_vec().into()) };
    build(
        Engine::builder(source)
            .device(DeviceChoice::Cpu)
            .context(64)
            .sequences(3)
            .threads(1, 1)
            .absent_experts(AbsentExperts::All)
            .experts(others),
    )
}

/// A service: a step is tried again; then its requests fail with the cause, and what they had stays cached.
#[test]
fn requests_fail_alone_and_others_go_on() {
    let f = Fixture::load("qwen3moe-moe");
    let bytes = with_experts(&f, N_EXPERT, N_USED, None);
    let model = open(bytes.clone()).expect("a model");
    let mut alone = load(&model, &config());
    block_on(alone.prefill(&f.tokens[..20])).expect("tokens run");
    let expected = block_on(alone.greedy(6)).expect("six tokens");
    let others = Others::new(&model, 2, Division::Away, worker_config());
    let seen = others.seen.clone();
    let mut engine = engine(&bytes, others);
    let mut tokens = |n_fail| {
        seen.fail.store(n_fail, Ordering::Relaxed);
        let mut answer = engine.generate_tokens(&f.tokens[..20], greedy(6)).expect("a request");
        let end = loop {
            match block_on(answer.next()) {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(answer.finish().expect("an end")),
                Err(e) => break Err(chain(&e)),
            }
        };
        (answer.tokens().to_vec(), end)
    };
    assert_eq!(tokens(0), (expected.clone(), Ok(Finish::Length)));
    assert_eq!(tokens(1), (expected.clone(), Ok(Finish::Length)), "the step ran again");
    let (_, failed) = tokens(2);
    assert!(failed.as_ref().is_err_and(|e| e.ends_with("no result from elsewhere: cut off")), "{failed:?}");
    assert_eq!(tokens(0), (expected, Ok(Finish::Length)), "the next request is served");
}
