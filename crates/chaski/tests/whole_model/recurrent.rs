//! Models with recurrent state: logits against golden ones, and sequences that are set back, which such a state cannot.

use chaski::kernels::FeatureSet;
use chaski::{KvType, Runner};
use chaski_models::{RunnerConfig, Target};
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::Choose;

use crate::archs::{Fixture, Quirk, open};
use crate::common::{Failures, Timed, block_on, nmse, say, shared_gpu};

/// All families, with the layers that each proves.
pub(crate) const FIXTURES: &[(&str, Quirk)] = &[
    // Mamba-2, Mamba-1.
    ("mamba2-dense", Quirk::None),
    ("mamba-dense", Quirk::None),
    // Mamba-2 beside attention: in other layers, in the same ones, in other layers without positions.
    ("granitehybrid-dense", Quirk::None),
    ("falcon-h1-dense", Quirk::Ignores(&["attn_output.bias"])),
    ("nemotron_h-dense", Quirk::None),
];
/// State alone, and beside a cache of keys and values.
const SET_BACK: &[&str] = &["mamba2-dense", "mamba-dense", "falcon-h1-dense"];
/// What sums in another order cost, which is up to 2e-11 where what layers add is scaled up (granitehybrid).
const LIMIT: f64 = 4e-11;

fn runner_of(f: &Fixture, target: &Target, half: bool, (n_ctx, chunk): (u32, u32)) -> Runner {
    let model = open(f.gguf(half, &|_, _| {})).expect("a fixture is a model");
    let config = RunnerConfig { n_ctx, kv: KvType::F32, chunk, ..RunnerConfig::default() };
    block_on(Runner::load(&model, target, &config, |_| {})).expect("a fixture loads")
}

fn runner(f: &Fixture, target: &Target) -> Runner {
    runner_of(f, target, false, (64, 16))
}

fn gpu(set: FeatureSet, checked: bool) -> Target {
    Target::Gpu(shared_gpu(set, checked))
}

fn targets() -> Vec<(&'static str, Target)> {
    let [sg, base] = [FeatureSet::Sg, FeatureSet::Base].map(|set| gpu(set, false));
    vec![("processor", Target::Cpu), ("sg", sg), ("base", base)]
}

#[test]
fn logits_match_the_golden_ones() {
    let _t = Timed::new("recurrent, logits");
    let mut failures = Failures::default();
    /// A chunk that takes all tokens at once, and one that has to be filled again.
    const CHUNKS: [(u32, &[usize]); 2] = [(64, &[48, 1]), (16, &[16, 7])];
    // Matrices in f16 hold these weights exactly.
    let mut ways: Vec<_> = targets().into_iter().map(|(name, t)| (name, t, false, &CHUNKS[..])).collect();
    ways[0].3 = &CHUNKS[..1];
    ways.push(("sg checked, f16", gpu(FeatureSet::Sg, true), true, &CHUNKS[1..]));
    for (name, _) in FIXTURES {
        let f = Fixture::load(name);
        for (device, target, half, chunks) in &ways {
            for (chunk, pieces) in *chunks {
                let mut r = runner_of(&f, target, *half, (64, *chunk));
                let mut errors = Vec::new();
                for n in *pieces {
                    r.truncate(0);
                    let all = block_on(r.eval_all(&f.tokens, *n)).expect("48 tokens run");
                    r.truncate(0);
                    f.tokens.chunks(*n).for_each(|part| r.prefill(part).expect("48 tokens run"));
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

#[test]
fn layers_take_few_dispatches() {
    for (name, most) in [("mamba2-dense", 5.0), ("mamba-dense", 8.0)] {
        let mut r = runner(&Fixture::load(name), &gpu(FeatureSet::Base, false));
        let (per_layer, _) = r.gpu_mut().expect("a GPU").dispatches_per_token();
        assert!(per_layer > 0.0 && per_layer <= most, "{name}: {per_layer} dispatches a layer");
    }
}

/// The copy on the way through an answer is from its 64th token.
#[test]
fn a_long_answer_is_set_back_to_its_last_copy() {
    let _t = Timed::new("recurrent, a long answer");
    let mut failures = Failures::default();
    let f = Fixture::load("mamba2-dense");
    let tokens: Vec<u32> = (0..100).map(|i| f.tokens[i * 7 % f.tokens.len()]).collect();
    let mut cpu = runner_of(&f, &Target::Cpu, false, (128, 32));
    let expected = block_on(cpu.eval_all(&tokens, 100)).expect("100 tokens run");
    for (device, target) in targets() {
        let mut r = runner_of(&f, &target, false, (128, 32));
        r.prefill(&tokens[..20]).expect("a prompt");
        for t in tokens[20..90].iter().chain(&[1, 2, 3]) {
            r.prefill(&[*t]).expect("a token");
        }
        // From the copy at 84; then from the start, since the copy at the prompt's end has made way for a later one.
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
    for name in SET_BACK {
        let f = Fixture::load(name);
        let t = &f.tokens;
        for (device, target) in targets() {
            let mut r = runner(&f, &target);
            let mut compare = |what: &str, found: Vec<f32>, from: usize, to: usize| {
                let e = nmse(&found, f.logits_of(from, to));
                say(format!("{name:20} {device:10} {what}: NMSE {e:.1e}"));
                failures.check(e <= LIMIT, || format!("{name}, {device}, {what}: {e:.2e} > {LIMIT:.0e}"));
            };
            // Five tokens of an answer, of which three are taken back: a copy is from the end of the prompt.
            r.prefill(&t[..20]).expect("a prompt");
            r.feed(&t[20..21]).expect("a token");
            for wrong in [t[21], 1, 2, 3] {
                r.feed(&[wrong]).expect("a token");
            }
            r.truncate(22);
            let found = block_on(r.eval_all(&t[22..30], 3)).expect("tokens run");
            compare("from the end of the prompt", found, 22, 30);
            // Before every copy: all is run again.
            r.truncate(5);
            let found = block_on(r.eval_all(&t[5..40], 35)).expect("tokens run");
            compare("from the start", found, 5, 40);
            // To the start: nothing is.
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
    for name in SET_BACK {
        let f = Fixture::load(name);
        let greedy = |logits: &[f32]| {
            let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            best.expect("a vocabulary") as u32
        };
        let mut cpu = runner(&f, &Target::Cpu);
        cpu.prefill(&f.tokens[..20]).expect("a prompt");
        let mut expected = Vec::new();
        for _ in 0..9 {
            expected.push(greedy(&block_on(cpu.logits()).expect("logits")));
            cpu.prefill(&expected[expected.len() - 1..]).expect("a token");
        }
        for (device, target) in targets().into_iter().skip(1) {
            let mut r = runner(&f, &target);
            r.prefill(&f.tokens[..20]).expect("a prompt");
            let gpu = r.gpu_mut().expect("a GPU");
            let first = gpu.choose(Choose::Greedy).expect("a token");
            let rest = gpu.decode(8, 20, Choose::Greedy).expect("tokens");
            let mut found = block_on(gpu.tokens(first)).expect("a token");
            found.extend(block_on(gpu.tokens(rest)).expect("tokens"));
            failures.check(found == expected, || format!("{name}, {device}: {found:?}, not {expected:?}"));
            // The history ends with the prompt, the state has seen eight tokens more.
            let gpu = r.gpu_mut().expect("a GPU");
            let e = gpu.prefill(&f.tokens[20..22], 20, false).expect_err("the state is further on");
            let as_expected = matches!(e, RuntimeError::State { found: Some(28), pos: 20 });
            failures.check(as_expected, || format!("{name}, {device}: {e}"));
            let all = block_on(r.eval_all(&f.tokens[20..48], 7)).expect("tokens run");
            let e = nmse(&all, f.logits_of(20, 48));
            failures.check(e <= LIMIT, || format!("{name}, {device}, after the answer: {e:.2e}"));
        }
    }
    failures.conclude();
}
