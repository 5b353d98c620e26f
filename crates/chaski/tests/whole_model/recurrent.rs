//! Sequences of models with recurrent state that are set back: such a state cannot be cut.

use chaski::kernels::FeatureSet;
use chaski::{KvType, Runner};
use chaski_models::{RunnerConfig, Target};
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::Choose;

use crate::archs::{Fixture, open};
use crate::common::{Failures, Timed, block_on, nmse, say, shared_gpu};

/// State alone, and beside a cache of keys and values.
const FIXTURES: &[&str] = &["mamba2-dense", "mamba-dense", "falcon-h1-dense", "nemotron_h-dense"];
/// As much as sums in another order cost.
const LIMIT: f64 = 1e-10;

fn runner(f: &Fixture, target: &Target) -> Runner {
    let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    let config = RunnerConfig { n_ctx: 64, kv: KvType::F32, chunk: 16, ..RunnerConfig::default() };
    block_on(Runner::load(&model, target, &config, |_| {})).expect("a fixture loads")
}

fn targets() -> Vec<(&'static str, Target)> {
    let gpu = |set| Target::Gpu(shared_gpu(set, false));
    vec![("processor", Target::Cpu), ("sg", gpu(FeatureSet::Sg)), ("base", gpu(FeatureSet::Base))]
}

#[test]
fn sequences_that_are_set_back_go_on_as_if_nothing_had_followed() {
    let _t = Timed::new("recurrent, set back");
    let mut failures = Failures::default();
    for name in FIXTURES {
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
    for name in FIXTURES {
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
