//! Several devices at work at once: pieces of prompts in flight on each, steps sent ahead, a device that is lost, and
//! devices of different kinds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chaski::kernels::FeatureSet;
use chaski::steps::{Executor as _, Input, Row, Runner, RunnerConfig, Step, Want};
use chaski::{Engine, Source};
use chaski_models::Target;
use chaski_runtime::gpu::Gpu;

use crate::archs::{Fixture, open, wanted};
use crate::common::{Failures, Timed, block_on, build, chain, full, greedy, left_for_full, one_in, text};
use crate::stages::gpus;
use crate::streaming::{N_EXPERT, N_USED, bits, config, with_experts};

/// Windows, recurrent state, experts and shared caches; by default in turns over two, three and four devices.
const FIXTURES: [&str; 5] =
    ["gemma3-dense", "lfm2-full-attention", "gpt-oss-moe", "gemma3n-dense", "qwen3next-moe"];

/// Long prompts in small pieces, several steps of them at once, then tokens that the device chooses.
fn long_prompts(r: &mut Runner, tokens: &[u32]) -> Vec<Vec<u32>> {
    let prompt: Vec<u32> = tokens.iter().cycle().take(300).copied().collect();
    let mut out = Vec::new();
    for bound in [Duration::from_secs(3600), Duration::ZERO] {
        r.set_prompt_bound(bound);
        r.truncate(0);
        block_on(r.prefill(&prompt)).expect("a prompt");
        out.push(bits(&block_on(r.logits()).expect("logits")));
        out.push(block_on(r.greedy(11)).expect("tokens"));
    }
    out
}

#[test]
fn prompts_in_flight_on_several_devices_give_the_bits_of_one() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("stages at work, prompts");
    let mut failures = Failures::default();
    for (nth, name) in one_in(2, FIXTURES).enumerate().filter(|(_, n)| wanted(n)) {
        let f = Fixture::load(name);
        let file = match name.ends_with("moe") {
            true => with_experts(&f, N_EXPERT, N_USED, None),
            false => f.gguf(true, &|_, _| {}),
        };
        let model = open(file).expect("a fixture is a model");
        let gpus = gpus(4, FeatureSet::Sg);
        let sizes = RunnerConfig { n_ctx: 384, chunk: 128, ..config(None) };
        let load = |target: Target| block_on(Runner::load(&model, &target, &sizes, |_| {}));
        let mut one = load(Target::Gpu(gpus[0].clone())).unwrap_or_else(|e| panic!("{name}: {}", chain(&e)));
        let expected = long_prompts(&mut one, &f.tokens);
        // As many devices as the model can be cut into.
        let most = (2..=4).rev().find_map(|n| load(Target::Gpus(gpus[..n].to_vec())).ok().map(|_| n));
        let most = most.expect("every fixture can be cut once");
        for n in 2..=most {
            if !full() && n != [2, 3, 4][nth % 3].min(most) {
                continue;
            }
            let mut several = load(Target::Gpus(gpus[..n].to_vec())).expect("it fits");
            let found = long_prompts(&mut several, &f.tokens);
            failures.check(found == expected, || format!("{name} over {n} devices: other bits"));
        }
    }
    failures.conclude();
}

/// The first device runs further steps of a prompt before the first of them has been read.
#[test]
fn devices_work_on_different_steps_at_once() {
    let _t = Timed::new("stages at work, at once");
    let f = Fixture::load("llama-gqa-rope_freqs");
    let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
    let gpus = gpus(2, FeatureSet::Sg);
    let sizes = RunnerConfig { n_ctx: 128, chunk: 16, ..config(None) };
    let load = |target| block_on(Runner::load(&model, &target, &sizes, |_| {})).expect("it fits");
    let mut r = load(Target::Gpus(gpus.clone()));
    r.forget();
    let step = |nth: usize| {
        let row = |i: usize| Row {
            seq: 0,
            pos: (16 * nth + i) as u32,
            components: None,
            input: Input::Token(f.tokens[16 * nth + i]),
            want: if i == 15 { Want::Choose } else { Want::Nothing },
        };
        Step { rows: (0..16).map(row).collect(), repeat: 1, n_planned: 16, ..Step::default() }
    };
    let count = |gpu: &Arc<Gpu>| {
        let c = gpu.counters();
        (c.submits.load(Ordering::Relaxed), c.reads.load(Ordering::Relaxed))
    };
    // The first step tells how long others take: they are one submission then.
    r.set_prompt_bound(Duration::from_secs(3600));
    r.submit(&step(0)).expect("a step");
    let mut found = block_on(r.read()).expect("its token").chosen;
    assert_eq!(r.max_under_way(), 3, "one more than there are devices");
    let before = count(&gpus[0]);
    (1..3).for_each(|nth| r.submit(&step(nth)).expect("a step"));
    let after = count(&gpus[0]);
    assert_eq!(after.0 - before.0, 2, "both steps are submitted to the first device");
    for _ in 1..3 {
        found.extend(block_on(r.read()).expect("its token").chosen);
    }
    let reads = count(&gpus[0]).1 - before.1;
    assert_eq!(reads, 2, "one crossing for each step");
    // The same tokens as one device chooses.
    let mut one = load(Target::Gpu(gpus[1].clone()));
    one.forget();
    let mut expected = Vec::new();
    for nth in 0..3 {
        one.submit(&step(nth)).expect("a step");
        expected.extend(block_on(one.read()).expect("its token").chosen);
    }
    assert_eq!(found, expected);
}

/// While the second device chooses tokens of one half of the sequences, the first runs the other half; and it has the
/// next step of the first half before the second was read.
#[test]
fn halves_of_the_answers_keep_two_devices_at_work() {
    let _t = Timed::new("stages at work, halves");
    let f = Fixture::load("llama-gqa-rope_freqs");
    let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
    let gpus = gpus(2, FeatureSet::Sg);
    let sizes = RunnerConfig { n_ctx: 64, n_seq: 4, ..config(None) };
    let load = |target| {
        let mut r = block_on(Runner::load(&model, &target, &sizes, |_| {})).expect("it fits");
        r.forget();
        r
    };
    let step = |seqs: [u32; 2], pos: usize, input: &dyn Fn(u32) -> Input| {
        let row = |seq| Row { seq, pos: pos as u32, components: None, input: input(seq), want: Want::Choose };
        Step { rows: seqs.map(row).to_vec(), repeat: 1, n_planned: 2, ..Step::default() }
    };
    let count = |gpu: &Arc<Gpu>| {
        let c = gpu.counters();
        (c.submits.load(Ordering::Relaxed), c.reads.load(Ordering::Relaxed))
    };
    let halves = [[0, 1], [2, 3]];
    let first = |seq: u32| Input::Token(f.tokens[seq as usize]);
    let mut r = load(Target::Gpus(gpus.clone()));
    assert_eq!((r.limits().n_device, r.max_under_way()), (2, 3));
    // The first step tells how long others take: each stage is one submission then.
    r.set_prompt_bound(Duration::from_secs(3600));
    r.submit(&step(halves[0], 0, &first)).expect("a step");
    block_on(r.read()).expect("its tokens");
    r.forget();
    let before = [0, 1].map(|d| count(&gpus[d]));
    let mut found = [Vec::new(), Vec::new()];
    halves.iter().for_each(|half| r.submit(&step(*half, 0, &first)).expect("a step"));
    for nth in 0..8 {
        // Of the half that is read next, before it is read.
        r.submit(&step(halves[nth % 2], nth / 2 + 1, &|_| Input::Chosen)).expect("a step");
        found[nth % 2].extend(block_on(r.read()).expect("its tokens").chosen);
        let sent = count(&gpus[0]).0 - before[0].0;
        assert_eq!(sent, nth as u64 + 3, "submissions to the first device when {} steps were read", nth + 1);
    }
    (0..2).for_each(|nth| found[nth].extend(block_on(r.read()).expect("its tokens").chosen));
    let work = [0, 1].map(|d| (count(&gpus[d]).0 - before[d].0, count(&gpus[d]).1 - before[d].1));
    assert_eq!(work, [(10, 10), (10, 10)], "submissions and readbacks of ten steps");
    let mut one = load(Target::Gpu(gpus[1].clone()));
    for (half, found) in halves.iter().zip(found) {
        let mut expected = Vec::new();
        for pos in 0..5 {
            let chosen = |_| Input::Chosen;
            let input: &dyn Fn(u32) -> Input = if pos == 0 { &first } else { &chosen };
            one.submit(&step(*half, pos, input)).expect("a step");
            expected.extend(block_on(one.read()).expect("its tokens").chosen);
        }
        assert_eq!(found, expected, "sequences {half:?}");
    }
}

#[test]
fn a_lost_device_of_several_leaves_the_model_to_the_others() {
    let _t = Timed::new("stages at work, a lost device");
    let gpus = gpus(3, FeatureSet::Sg);
    let engine = |gpus: &[Arc<Gpu>]| {
        build(Engine::builder(Source::Default).context(128).chunk(32).gpus(gpus.to_vec()))
    };
    let prompt = "Once upon a time there was a";
    let expected = text(&mut engine(&gpus[2..]), prompt, greedy(12)).expect("a text");
    // In mid answer, first the device that samples, then one of two.
    let mut e = engine(&gpus);
    let mut g = e.generate(prompt, greedy(12)).expect("a generation");
    let mut found = String::new();
    for nth in 0.. {
        match nth {
            2 => gpus[2].destroy(),
            5 => gpus[0].destroy(),
            _ => {}
        }
        let Some(piece) = block_on(g.next()).expect("the rest goes on") else { break };
        found += &piece.text;
    }
    drop(g);
    assert_eq!(found, expected);
    let names: Vec<&str> = e.gpus().iter().map(|gpu| gpu.summary().name.as_str()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    // Without any, the loss is an error.
    gpus[1].destroy();
    let lost = text(&mut e, prompt, greedy(3)).expect_err("no device is left");
    assert!(lost.is_device_lost(), "{}", chain(&lost));
}

/// Each device runs the kernels of its own features. Values differ by rounding only.
#[test]
fn devices_of_different_kinds_work_together() {
    let _t = Timed::new("stages at work, kinds");
    let f = Fixture::load("llama-gqa-rope_freqs");
    let model = open(f.gguf(true, &|_, _| {})).expect("a fixture is a model");
    let (sg, base) = (gpus(1, FeatureSet::Sg).remove(0), gpus(1, FeatureSet::Base).remove(0));
    let run = |target: Target| {
        let mut r = block_on(Runner::load(&model, &target, &config(None), |_| {})).expect("it fits");
        block_on(r.eval_all(&f.tokens[..40], 40)).expect("tokens run")
    };
    let expected = run(Target::Gpu(sg.clone()));
    for gpus in [vec![sg.clone(), base.clone()], vec![base, sg]] {
        let found = run(Target::Gpus(gpus));
        let error: f64 = found.iter().zip(&expected).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let power: f64 = expected.iter().map(|b| f64::from(*b).powi(2)).sum();
        assert!(error <= 1e-8 * power, "{} of the power", error / power);
    }
}
