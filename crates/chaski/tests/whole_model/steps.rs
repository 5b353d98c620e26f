//! Steps of rows: several sequences with outputs of every kind, whole and in pieces, on every kind of executor.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chaski::KvType;
use chaski::errors::{ModelError, RuntimeError};
use chaski::kernels::FeatureSet;
use chaski::steps::Runner;
use chaski::steps::{Executor as _, Input, Outputs, Row, Step, Want};
use chaski_models::{RunnerConfig, Target};

use crate::archs::{Fixture, open};
use crate::common::{Failures, Timed, block_on, full, nmse, shared_gpu};
use crate::stages::gpus;

/// KV cache only, recurrent state, windows, experts.
const FIXTURES: [&str; 4] = ["llama-plain", "qwen35-heads", "gemma3-dense", "gpt-oss-moe"];

/// Tokens of a sequence: start in the fixture's text, and the output of each.
const SEQUENCES: [(usize, &[Want]); 3] = [
    (
        0,
        &[Want::Nothing, Want::Hidden, Want::Logits, Want::Nothing, Want::Hidden, Want::Logits, Want::Choose],
    ),
    (0, &[Want::Hidden]),
    (0, &[Want::Logits, Want::Nothing, Want::Logits, Want::ChooseMasked]),
];

/// Every third token is allowed.
fn is_allowed(token: usize) -> bool {
    token % 3 == 1
}

fn mask(n_vocab: usize) -> Vec<u32> {
    let word = |w: usize| (0..32).filter(|bit| is_allowed(32 * w + bit)).fold(0, |word, bit| word | 1 << bit);
    (0..n_vocab.div_ceil(32)).map(word).collect()
}

fn runner(f: &Fixture, target: &Target, experts_on_cpu: u32) -> Runner {
    let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    let sizes = RunnerConfig { n_ctx: 64, n_seq: 3, chunk: 32, ..RunnerConfig::default() };
    let config = RunnerConfig { kv: KvType::F32, experts_on_cpu, ..sizes };
    block_on(Runner::load(&model, target, &config, |_| {})).expect("a fixture loads")
}

fn step(f: &Fixture) -> Step {
    let row = |seq: usize, pos: usize, want| Row {
        seq: seq as u32,
        pos: pos as u32,
        components: None,
        input: Input::Token(f.tokens[pos]),
        want,
    };
    let rows = SEQUENCES.iter().enumerate().flat_map(|(seq, (first, wants))| {
        wants.iter().enumerate().map(move |(i, want)| row(seq, first + i, *want))
    });
    let rows: Vec<Row> = rows.collect();
    Step { repeat: 1, n_planned: rows.len() as u32, rows, ..Step::default() }
}

fn run(r: &mut Runner, step: &Step) -> Outputs {
    r.submit(step).expect("a step");
    if step.rows.iter().any(|row| row.want == Want::ChooseMasked) {
        r.mask(&mask(r.n_vocab() as usize)).expect("the mask of a row");
    }
    block_on(r.read()).expect("its outputs")
}

/// Expected output of each row: its sequence run alone, token by token.
fn alone(f: &Fixture, r: &mut Runner) -> Outputs {
    let mut out = Outputs::default();
    for (first, wants) in SEQUENCES {
        let tokens = &f.tokens[first..first + wants.len()];
        r.truncate(0);
        let logits = block_on(r.eval_all(tokens, 1)).expect("tokens run");
        r.truncate(0);
        let hidden = block_on(r.eval_hidden(tokens)).expect("tokens run");
        let (n_vocab, n_embd) = (logits.len() / tokens.len(), hidden.len() / tokens.len());
        for (i, want) in wants.iter().enumerate() {
            let row = &logits[i * n_vocab..][..n_vocab];
            match want {
                Want::Nothing => {}
                Want::Logits => out.logits.extend(row),
                Want::Hidden => out.hidden.extend(&hidden[i * n_embd..][..n_embd]),
                Want::Choose | Want::ChooseMasked => {
                    let tokens = (0..n_vocab).filter(|t| *want == Want::Choose || is_allowed(*t));
                    let best = tokens.max_by(|a, b| row[*a].total_cmp(&row[*b]));
                    out.chosen.push(best.expect("a vocabulary") as u32);
                }
            }
        }
    }
    out
}

#[test]
fn rows_of_several_sequences_give_what_each_gives_alone() {
    let _t = Timed::new("steps, outputs");
    let mut failures = Failures::default();
    for name in FIXTURES {
        let f = Fixture::load(name);
        let ways = [(None, 0), (Some(FeatureSet::Sg), 0), (Some(FeatureSet::Sg), 1)];
        // Steps with offloaded experts run when they are read.
        // By default the others are on a device in `masks_follow_tokens_that_the_device_chose` and in `stages`.
        let is_on_gpu = full() || ["llama-plain", "gpt-oss-moe"].contains(&name);
        let ways = ways.into_iter().filter(|way| way.0.is_none() || is_on_gpu);
        for (set, on_cpu) in ways.filter(|way| way.1 == 0 || name.ends_with("moe")) {
            let target = set.map_or(Target::Cpu, |set| Target::Gpu(shared_gpu(set, false)));
            let device = format!("{}, {on_cpu} layers offloaded", set.map_or("CPU", FeatureSet::word));
            let mut r = runner(&f, &target, on_cpu);
            let expected = alone(&f, &mut r);
            let mut whole: Option<Outputs> = None;
            for bound in [Duration::from_secs(3600), Duration::ZERO] {
                r.set_prompt_bound(bound);
                let found = run(&mut r, &step(&f));
                assert_eq!(found.chosen, expected.chosen, "{name}, {device}");
                for (what, a, b) in
                    [("logits", &found.logits, &expected.logits), ("hidden", &found.hidden, &expected.hidden)]
                {
                    assert_eq!(a.len(), b.len(), "{name}, {device}: {what}");
                    let e = nmse(a, b);
                    failures.check(e <= 2e-5, || format!("{name}, {device}: {what} differ by {e:.1e}"));
                }
                // Splitting into pieces changes no bit.
                let bits = |o: &Outputs| {
                    [&o.logits, &o.hidden].map(|v| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
                };
                let same = whole.as_ref().is_none_or(|w| bits(w) == bits(&found));
                failures.check(same, || format!("{name}, {device}: pieces give other bits"));
                whole = Some(found);
            }
            // The next tokens follow device-chosen ones, on the device alone.
            let next =
                |seq: u32, pos| Row { seq, pos, components: None, input: Input::Chosen, want: Want::Choose };
            let rows = vec![next(0, 7), next(2, 4)];
            let ahead = run(&mut r, &Step { rows, repeat: 3, n_planned: 2, ..Step::default() });
            let mut by_hand = Vec::new();
            for (n, first) in [(7, expected.chosen[0]), (4, expected.chosen[1])] {
                r.truncate(0);
                block_on(r.prefill(&[&f.tokens[..n], &[first]].concat())).expect("tokens run");
                by_hand.push(block_on(r.greedy(3)).expect("tokens"));
            }
            let together: Vec<u32> = (0..3).flat_map(|i| [by_hand[0][i], by_hand[1][i]]).collect();
            assert_eq!(ahead.chosen, together, "{name}, {device}");
        }
    }
    failures.conclude();
}

#[test]
fn steps_that_do_not_fit_are_refused_with_both_numbers() {
    let f = Fixture::load("llama-plain");
    for set in [None, Some(FeatureSet::Sg)] {
        let target = set.map_or(Target::Cpu, |set| Target::Gpu(shared_gpu(set, false)));
        let mut r = runner(&f, &target, 0);
        for (seq, pos, what, found, limit) in
            [(3, 0, "sequences", 4, 3), (0, 64, "tokens of the sequence", 65, 64)]
        {
            let rows = vec![Row { seq, pos, components: None, input: Input::Token(1), want: Want::Logits }];
            let step = Step { rows, repeat: 1, n_planned: 1, ..Step::default() };
            // The CPU may report it when it runs the step.
            match r.submit(&step).and_then(|()| block_on(r.read()).map(drop)) {
                Err(ModelError::Runtime(RuntimeError::Limit { what: w, found: n, limit: l })) => {
                    assert_eq!((w, n, l), (what, found, limit));
                }
                other => panic!("{what}: {other:?}"),
            }
        }
    }
}

/// A step with masks is sent while nobody has read the token before; only then does its mask come.
#[test]
fn masks_follow_tokens_that_the_device_chose() {
    let _t = Timed::new("steps, masks");
    for name in ["llama-plain", "qwen35-heads"] {
        let f = Fixture::load(name);
        for set in [None, Some(FeatureSet::Sg)] {
            let target = set.map_or(Target::Cpu, |set| Target::Gpu(shared_gpu(set, false)));
            let mut r = runner(&f, &target, 0);
            let n_vocab = r.n_vocab() as usize;
            let row = |seq: u32, pos: usize, input, want| Row {
                seq,
                pos: pos as u32,
                components: None,
                input,
                want,
            };
            // Tokens alone, each from logits of which the mask leaves a part.
            let mut expected = f.tokens[..4].to_vec();
            for _ in 0..4 {
                r.truncate(0);
                let logits = block_on(r.eval_all(&expected, 1))
                    .expect("tokens run")
                    .split_off((expected.len() - 1) * n_vocab);
                let allowed = (0..n_vocab).filter(|t| is_allowed(*t));
                let best = allowed.max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
                expected.push(best.expect("a vocabulary") as u32);
            }
            let mut rows: Vec<Row> =
                (0..4).map(|i| row(0, i, Input::Token(f.tokens[i]), Want::Nothing)).collect();
            rows[3].want = Want::ChooseMasked;
            // Another sequence, without masks, is in all steps.
            rows.push(row(1, 0, Input::Token(f.tokens[0]), Want::Choose));
            r.submit(&Step { n_planned: 5, rows, repeat: 1, ..Step::default() }).expect("a step");
            r.mask(&mask(n_vocab)).expect("its mask");
            let mut found = Vec::new();
            for i in 0..3 {
                let rows = vec![
                    row(0, 4 + i, Input::Chosen, Want::ChooseMasked),
                    row(1, 1 + i, Input::Chosen, Want::Choose),
                ];
                r.submit(&Step { n_planned: 2, rows, repeat: 1, ..Step::default() }).expect("a step ahead");
                found.push(block_on(r.read()).expect("the token before").chosen[0]);
                r.mask(&mask(n_vocab)).expect("its mask");
            }
            found.push(block_on(r.read()).expect("the last token").chosen[0]);
            assert_eq!(found, expected[4..], "{name}, {set:?}");
        }
    }
}

#[test]
fn a_step_without_rows_and_a_read_without_a_step_are_errors() {
    let f = Fixture::load("llama-plain");
    // By default the set whose pipelines other tests compile.
    let set = if full() { FeatureSet::Base } else { FeatureSet::Sg };
    for target in [Target::Cpu, Target::Gpu(shared_gpu(set, false))] {
        let mut r = runner(&f, &target, 0);
        assert!(matches!(r.submit(&Step::default()), Err(ModelError::NoRows)));
        assert!(matches!(block_on(r.read()), Err(ModelError::NoStep)));
        let row = Row { seq: 0, pos: 0, components: None, input: Input::Token(1), want: Want::Choose };
        let found = run(&mut r, &Step { rows: vec![row], repeat: 1, n_planned: 1, ..Step::default() });
        assert_eq!(found.chosen.len(), 1);
    }
}

/// Several sequences keep their tokens ahead on the device as one does: a step of any number of tokens is one
/// submission and one wait.
#[test]
fn sequences_together_wait_as_often_as_one() {
    let f = Fixture::load("llama-plain");
    // A device of its own, whose counters no other test changes.
    let gpu = gpus(1, FeatureSet::Sg).remove(0);
    let mut r = runner(&f, &Target::Gpu(gpu.clone()), 0);
    // However busy the machine is, no step exceeds it.
    r.set_prompt_bound(Duration::from_secs(3600));
    let row = |seq: u32, pos, input| Row { seq, pos, components: None, input, want: Want::Choose };
    for n_seq in [1, 2, 3] {
        let first = |seq| row(seq, 0, Input::Token(f.tokens[seq as usize]));
        let next = |seq| row(seq, 1, Input::Chosen);
        let rows: Vec<Row> = (0..n_seq).map(first).collect();
        run(&mut r, &Step { rows, repeat: 1, n_planned: n_seq, ..Step::default() });
        let counts = || [&gpu.counters().submits, &gpu.counters().reads].map(|c| c.load(Ordering::Relaxed));
        let before = counts();
        let rows: Vec<Row> = (0..n_seq).map(next).collect();
        let found = run(&mut r, &Step { rows, repeat: 8, n_planned: n_seq, ..Step::default() }).chosen;
        assert_eq!(found.len() as u32, 8 * n_seq);
        let after = counts();
        assert_eq!([after[0] - before[0], after[1] - before[1]], [1, 1], "{n_seq} sequences");
    }
}
