//! Models with recurrent state: golden logits, and rewinding, which the state itself does not support.

use chaski::KvType;
use chaski::gguf::GgmlType;
use chaski::kernels::FeatureSet;
use chaski::steps::Runner;
use chaski::steps::{Executor as _, Input, Row, Step, Want};
use chaski_models::{ModelError, RunnerConfig, Target};
use chaski_runtime::RuntimeError;

use crate::archs::{Fixture, open, wanted};
use crate::common::{Failures, Timed, block_on, full, in_turns, nmse, say, shared_gpu, targets};

/// All families, with the layers that each covers.
pub(crate) const FIXTURES: &[&str] = &[
    // Mamba-2, Mamba-1.
    "mamba2-dense",
    "mamba-dense",
    // Mamba-2 and attention: in separate layers, in the same layers, in separate layers without positions.
    "granitehybrid-dense",
    "falcon-h1-dense",
    "nemotron_h-dense",
    // Gated convolutions, and attention; with experts.
    "lfm2-full-attention",
    "lfm2moe-moe",
    // Gated delta nets, and gated attention; with experts.
    "qwen35-dense",
    "qwen35moe-moe",
    "qwen3next-moe",
    // Options that those do not cover. Their logits come from the families' equations in f64, implemented in another
    // language, which reproduces the logits of the fixtures above to 3e-12.
    // Keys shared by several heads of values, tiled; RoPE on part of each head, some of it unused in a text; tied
    // embeddings.
    "qwen35-heads",
    // The same with adjacent heads, in the layout of older files, too; more experts than a token uses.
    "qwen3next-heads",
    // Attention to the last 9 tokens; more experts than a token uses, selected with a bias.
    "lfm2-window",
    "lfm2moe-choice",
    // Experts without gates, as wide as the model or narrower, and a shared one.
    "nemotron_h_moe-plain",
    "nemotron_h_moe-latent",
    // Mamba-1 with norms of dt, B and C: weighted, with attention and experts; unweighted.
    "jamba-moe",
    "mamba-norms",
    // Mamba-2 whose dt, B and C are computed from the convolution's output.
    "plamo2-dense",
];
/// State only, and with a KV cache.
const SET_BACK: &[&str] =
    &["mamba2-dense", "mamba-dense", "falcon-h1-dense", "lfm2-full-attention", "qwen35-heads"];
/// Cost of rounding keys and values: three times the measured error.
const F16_KV: &[(&str, f64)] =
    &[("lfm2-window", 2e-11), ("lfm2moe-choice", 2e-11), ("qwen35-heads", 1.5e-7), ("qwen3next-heads", 3e-8)];
/// Cost of reordered sums, up to 2e-11 where layer outputs are scaled up (granitehybrid).
const LIMIT: f64 = 4e-11;

/// A configuration for running a fixture.
#[derive(Clone, Copy)]
struct Way {
    /// Matrices are stored in f16, which represents these weights exactly.
    half: bool,
    /// Type of the KV cache.
    kv: KvType,
    n_ctx: u32,
    /// Chunk size of the plan.
    chunk: u32,
}

const WAY: Way = Way { half: false, kv: KvType::F32, n_ctx: 64, chunk: 16 };

fn runner_of(f: &Fixture, target: &Target, way: Way) -> Runner {
    let model = open(f.gguf(way.half, &|_, _| {})).expect("a fixture is a model");
    let Way { kv, n_ctx, chunk, .. } = way;
    let config = RunnerConfig { n_ctx, kv, chunk, ..RunnerConfig::default() };
    block_on(Runner::load(&model, target, &config, |_| {})).expect("a fixture loads")
}

fn runner(f: &Fixture, target: &Target) -> Runner {
    runner_of(f, target, WAY)
}

fn gpu(set: FeatureSet, checked: bool) -> Target {
    Target::Gpu(shared_gpu(set, checked))
}

#[test]
fn logits_match_the_golden_ones() {
    let _t = Timed::new("recurrent, logits");
    let mut failures = Failures::default();
    /// A chunk for all tokens at once, and one that has to be filled again.
    const CHUNKS: [(u32, &[usize]); 2] = [(64, &[48, 1]), (16, &[16, 7])];
    let mut ways: Vec<_> = targets().into_iter().map(|(name, t)| (name, t, WAY, &CHUNKS[..])).collect();
    ways[0].3 = &CHUNKS[..1];
    let f16 = Way { half: true, ..WAY };
    ways.push(("sg checked, f16", gpu(FeatureSet::Sg, true), f16, &CHUNKS[1..]));
    for (nth, name) in FIXTURES.iter().enumerate().filter(|(_, f)| wanted(f)) {
        let f = Fixture::load(name);
        // On the CPU, and in turns on the GPU: by default a twelfth of them.
        let on_gpu = in_turns(nth / 12, &ways[1..]).into_iter().filter(|_| full() || nth % 12 == 0);
        let ways = [&ways[0]].into_iter().cloned().chain(on_gpu);
        for (device, target, way, chunks) in ways {
            for (chunk, pieces) in in_turns(nth / 2, chunks) {
                let mut r = runner_of(&f, &target, Way { chunk, ..way });
                let mut errors = Vec::new();
                // Pieces of other sizes take other pipelines.
                let pieces = if device == "CPU" { pieces.to_vec() } else { in_turns(nth / 4, pieces) };
                for n in pieces {
                    r.truncate(0);
                    let all = block_on(r.eval_all(&f.tokens, n)).expect("48 tokens run");
                    r.truncate(0);
                    f.tokens.chunks(n).for_each(|part| block_on(r.prefill(part)).expect("48 tokens run"));
                    let last = block_on(r.logits()).expect("logits of the last token");
                    let e = nmse(&all, f.logits_of(0, 48)).max(nmse(&last, f.logits_of(47, 48)));
                    failures.check(e <= LIMIT, || {
                        format!("{name}, {device}, chunk {chunk}, pieces of {n}: {e:.2e} > {LIMIT:.0e}")
                    });
                    errors.push(format!("{e:.1e} in pieces of {n}"));
                }
                say(format!("{name:20} {device:18} chunk {chunk}: NMSE {}", errors.join(", ")));
            }
        }
    }
    failures.conclude();
}

/// A KV cache in f16 beside the state costs as much as elsewhere.
#[test]
fn logits_with_a_cache_in_f16_match_the_golden_ones() {
    let _t = Timed::new("recurrent, f16 cache");
    let mut failures = Failures::default();
    let way = Way { kv: KvType::both(GgmlType::F16), ..WAY };
    let n = if full() { F16_KV.len() } else { 1 };
    for (nth, (name, limit)) in F16_KV[..n].iter().enumerate().filter(|(_, f)| wanted(f.0)) {
        let f = Fixture::load(name);
        for (device, target) in targets().into_iter().skip(1) {
            let mut r = runner_of(&f, &target, way);
            for n in in_turns(nth, &[16, 7, 1]) {
                r.truncate(0);
                let all = block_on(r.eval_all(&f.tokens, n)).expect("48 tokens run");
                let e = nmse(&all, f.logits_of(0, 48));
                say(format!("{name:24} {device:10} KV f16: NMSE {e:.1e} in pieces of {n}"));
                failures
                    .check(e <= *limit, || format!("{name}, {device}, pieces of {n}: {e:.2e} > {limit:.0e}"));
            }
        }
    }
    failures.conclude();
}

#[test]
fn layers_take_few_dispatches() {
    for (name, most) in [("mamba2-dense", 5.0), ("mamba-dense", 8.0)] {
        let r = runner(&Fixture::load(name), &gpu(FeatureSet::Base, false));
        let (per_layer, _) = r.gpu().expect("a GPU").dispatches_per_token();
        assert!(per_layer > 0.0 && per_layer <= most, "{name}: {per_layer} dispatches a layer");
    }
}

/// The snapshot during an answer is taken at its 64th token.
#[test]
fn a_long_answer_is_set_back_to_its_last_copy() {
    let _t = Timed::new("recurrent, a long answer");
    let mut failures = Failures::default();
    let f = Fixture::load("mamba2-dense");
    let long = Way { n_ctx: 128, chunk: 32, ..WAY };
    let tokens: Vec<u32> = (0..100).map(|i| f.tokens[i * 7 % f.tokens.len()]).collect();
    let mut cpu = runner_of(&f, &Target::Cpu, long);
    let expected = block_on(cpu.eval_all(&tokens, 100)).expect("100 tokens run");
    for (device, target) in targets() {
        let mut r = runner_of(&f, &target, long);
        block_on(r.prefill(&tokens[..20])).expect("a prompt");
        for t in tokens[20..90].iter().chain(&[1, 2, 3]) {
            block_on(r.prefill(&[*t])).expect("a token");
        }
        // From the snapshot at 84; then from the start, since a later one has replaced the snapshot at the prompt's
        // end.
        for to in [90, 80] {
            r.truncate(to);
            let found = block_on(r.eval_all(&tokens[to..], 10)).expect("tokens run");
            let e = nmse(&found, &expected[to * r.n_vocab() as usize..]);
            say(format!("mamba2, {device}, back to {to}: NMSE {e:.1e}"));
            failures.check(e <= LIMIT, || format!("{device}, back to {to}: {e:.2e}"));
        }
    }
    failures.conclude();
}

#[test]
fn sequences_that_are_set_back_go_on_as_if_nothing_had_followed() {
    let _t = Timed::new("recurrent, set back");
    let mut failures = Failures::default();
    // By default on the CPU; the next test is about devices.
    let n_device = if full() { 3 } else { 1 };
    for name in SET_BACK {
        let f = Fixture::load(name);
        let t = &f.tokens;
        for (device, target) in targets().into_iter().take(n_device) {
            let mut r = runner(&f, &target);
            let mut compare = |what: &str, found: Vec<f32>, from: usize, to: usize| {
                let e = nmse(&found, f.logits_of(from, to));
                say(format!("{name:20} {device:10} {what}: NMSE {e:.1e}"));
                failures.check(e <= LIMIT, || format!("{name}, {device}, {what}: {e:.2e} > {LIMIT:.0e}"));
            };
            // Five tokens of an answer, three of which are rewound: there is a snapshot at the end of the prompt.
            block_on(r.prefill(&t[..20])).expect("a prompt");
            block_on(r.feed(&t[20..21])).expect("a token");
            for wrong in [t[21], 1, 2, 3] {
                block_on(r.feed(&[wrong])).expect("a token");
            }
            r.truncate(22);
            let found = block_on(r.eval_all(&t[22..30], 3)).expect("tokens run");
            compare("from the end of the prompt", found, 22, 30);
            // Before every snapshot: everything runs again.
            r.truncate(5);
            let found = block_on(r.eval_all(&t[5..40], 35)).expect("tokens run");
            compare("from the start", found, 5, 40);
            // To the start: nothing runs again.
            r.truncate(0);
            let found = block_on(r.eval_all(t, 48)).expect("tokens run");
            compare("all anew", found, 0, 48);
        }
    }
    failures.conclude();
}

#[test]
fn tokens_that_the_device_sent_ahead_are_taken_back() {
    let _t = Timed::new("recurrent, sent ahead");
    let mut failures = Failures::default();
    for (nth, name) in SET_BACK.iter().enumerate() {
        let f = Fixture::load(name);
        let greedy = |logits: &[f32]| {
            let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            best.expect("a vocabulary") as u32
        };
        let mut cpu = runner(&f, &Target::Cpu);
        block_on(cpu.prefill(&f.tokens[..20])).expect("a prompt");
        let mut expected = Vec::new();
        for _ in 0..9 {
            expected.push(greedy(&block_on(cpu.logits()).expect("logits")));
            block_on(cpu.prefill(&expected[expected.len() - 1..])).expect("a token");
        }
        for (device, target) in targets().into_iter().skip(1).filter(|_| full() || nth % 4 == 1) {
            let mut r = runner(&f, &target);
            block_on(r.prefill(&f.tokens[..20])).expect("a prompt");
            let found = block_on(r.greedy(9)).expect("tokens");
            failures.check(found == expected, || format!("{name}, {device}: {found:?}, not {expected:?}"));
            // The history ends with the prompt; the state has processed eight more tokens.
            r.truncate(20);
            assert_eq!(r.gpu().expect("a GPU").state_at(0), Some(28), "{name}, {device}");
            let all = block_on(r.eval_all(&f.tokens[20..48], 7)).expect("tokens run");
            let e = nmse(&all, f.logits_of(20, 48));
            failures.check(e <= LIMIT, || format!("{name}, {device}, after the answer: {e:.2e}"));
            // A step can only start where the state is.
            let row = Row {
                seq: 0,
                pos: 20,
                components: None,
                input: Input::Token(f.tokens[20]),
                want: Want::Nothing,
            };
            let e = r.submit(&Step { rows: vec![row], repeat: 1, n_planned: 1, ..Step::default() });
            let as_expected =
                matches!(e, Err(ModelError::Runtime(RuntimeError::State { found: Some(48), pos: 20 })));
            failures.check(as_expected, || format!("{name}, {device}: {e:?}"));
        }
    }
    failures.conclude();
}
