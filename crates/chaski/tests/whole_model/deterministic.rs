//! Deterministic runs: the bits of a sequence's results do not depend on what runs with it.

use chaski::gguf::GgmlType;
use chaski::kernels::FeatureSet;
use chaski::options::Speculation;
use chaski::steps::Runner;
use chaski::{GenerateOptions, KvType};
use chaski_models::serve::{Answer, Event, Handle, Request, serve};
use chaski_models::{RunnerConfig, Target};

use crate::archs::{Fixture, open, wanted};
use crate::common::{
    Failures, Timed, block_on, coop_gpu, full, greedy, in_turns, left_for_full, one_in, say, shared_gpu,
};
use crate::serve::seeded;
use crate::stages::gpus;
use crate::streaming::bits;

/// Every kind of cache, state, attention and product.
const FAMILIES: &[&str] = &[
    "llama-gqa-rope_freqs",
    "qwen3moe-moe",
    "gemma3-dense",
    "gpt-oss-moe",
    "deepseek2-moe",
    "mamba2-dense",
    "falcon-h1-dense",
    "lfm2-window",
    "qwen35-heads",
    "gemma3n-dense",
];

/// In [`targets`]: the device with kernels without barriers.
const ALONE: usize = 2;

fn targets() -> Vec<(&'static str, Target)> {
    let gpu = |set| Target::Gpu(shared_gpu(set, false));
    let coop = coop_gpu().map(|gpu| ("coop", Target::Gpu(gpu)));
    let all = [
        ("sg", gpu(FeatureSet::Sg)),
        ("base", gpu(FeatureSet::Base)),
        ("alone", gpu(FeatureSet::Alone)),
        ("two devices", Target::Gpus(gpus(2, FeatureSet::Sg))),
    ];
    all.into_iter().chain(coop).collect()
}

fn runner(f: &Fixture, target: &Target, deterministic: bool, kv: KvType) -> Runner {
    let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    let config =
        RunnerConfig { n_ctx: 64, n_seq: 8, chunk: 64, kv, deterministic, ..RunnerConfig::default() };
    block_on(Runner::load(&model, target, &config, |_| {})).expect("a fixture loads")
}

/// Begins anew in all sequences.
fn reset(r: &mut Runner) {
    for seq in 0..8 {
        r.select(seq);
        r.truncate(0);
    }
    r.select(0);
}

/// Logits of the tokens: one by one, all at once, in pieces, and in another sequence between two others.
fn in_all_ways(r: &mut Runner, tokens: &[u32]) -> Vec<(&'static str, Vec<f32>)> {
    let mut found = Vec::new();
    for (what, chunk) in [("one by one", 1), ("at once", 64), ("in pieces of 13", 13)] {
        reset(r);
        found.push((what, block_on(r.eval_all(tokens, chunk)).expect("the tokens run")));
    }
    reset(r);
    let n_vocab = r.n_vocab() as usize;
    let mut beside = Vec::new();
    // Few and many columns, of few and of many tokens of a sequence.
    for piece in [&tokens[..1], &tokens[1..4], &tokens[4..24], &tokens[24..25], &tokens[25..]] {
        let others = |seq| tokens.iter().rev().take(1 + piece.len() % 7).map(move |t| (seq, *t));
        let own = piece.iter().map(|t| (3, *t));
        let columns: Vec<(usize, u32)> = others(1).chain(own).chain(others(6)).collect();
        let logits = block_on(r.eval_columns(&columns)).expect("the columns run");
        let of_own = columns.iter().zip(logits.chunks_exact(n_vocab)).filter(|(c, _)| c.0 == 3);
        of_own.for_each(|(_, row)| beside.extend_from_slice(row));
    }
    found.push(("beside others", beside));
    found
}

/// The ways whose bits differ from those of the first.
fn differing(found: &[(&'static str, Vec<f32>)]) -> Vec<&'static str> {
    let (_, first) = &found[0];
    found.iter().filter(|(_, logits)| bits(logits) != bits(first)).map(|(what, _)| *what).collect()
}

#[test]
fn bits_of_a_token_do_not_depend_on_what_runs_with_it() {
    let _t = Timed::new("deterministic, logits");
    let mut failures = Failures::default();
    let targets = targets();
    let caches = [KvType::F32, KvType::F16, KvType::both(GgmlType::Q8_0)];
    let mut n_other = 0;
    for (nth, name) in one_in(10, FAMILIES.iter().enumerate()).filter(|(_, name)| wanted(name)) {
        let f = Fixture::load(name);
        let kv = caches[nth % caches.len()];
        for (device, target) in in_turns(nth, &targets) {
            let found = in_all_ways(&mut runner(&f, &target, true, kv), &f.tokens[..40]);
            let other = differing(&found);
            say(format!("{name:22} {device:12} cache {kv}: {} logits", found[0].1.len()));
            failures.check(other.is_empty(), || format!("{name}, {device}, cache {kv}: {other:?}"));
        }
        // By default each number of columns has the kernels that suit it.
        if full() || nth == 0 {
            let sg = Target::Gpu(shared_gpu(FeatureSet::Sg, false));
            n_other += differing(&in_all_ways(&mut runner(&f, &sg, false, kv), &f.tokens[..40])).len();
        }
    }
    failures.check(n_other > 0, || "bits are the same without the option, so the test sees nothing".into());
    failures.conclude();
}

/// Tokens of an answer, and log probabilities if it has any: they show the bits of its logits.
type Tokens = Vec<(u32, Option<u32>)>;

fn outcome(answer: Answer) -> Tokens {
    read(answer).0
}

/// The same, and the number of tokens that were drafted.
fn read(mut answer: Answer) -> (Tokens, usize) {
    let mut out = Vec::new();
    while let Some(event) = block_on(answer.next()) {
        match event {
            Event::Piece(piece) => {
                let logprob = piece.logprobs.map(|l| l.logprob.to_bits());
                out.extend(piece.token.map(|token| (token, logprob)));
            }
            Event::Failed { error } => panic!("{error}"),
            _ => {}
        }
    }
    let n_drafted = answer.stats().n_drafted;
    (out, n_drafted)
}

/// Answers of a service on a pool that is too small for all of them: 1, 2, 7 and 32 at once, in two orders of arrival,
/// with prompts that share prefixes, and with some that are cancelled; and those with drafts.
#[test]
fn answers_do_not_depend_on_other_requests() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("deterministic, answers");
    let f = Fixture::load("llama-gqa-rope_freqs");
    let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
    // By default on kernels without tiles: one of 64 columns for each token takes long on a software GPU.
    for (device, target) in in_turns(ALONE, &targets()) {
        let config = RunnerConfig {
            n_ctx: 192,
            n_seq: 32,
            kv_tokens: Some(16 * 64),
            deterministic: true,
            ..RunnerConfig::default()
        };
        let service = || -> Handle {
            let runner = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads");
            let (handle, driver) = serve(runner, model.shared_text().0, 64).expect("a service");
            driver.spawn().expect("a thread");
            handle
        };
        let ask_with = |handle: &Handle, i: usize, speculate: Option<Speculation>| {
            let options = if i % 2 == 0 { greedy(6 + i % 5) } else { seeded(i as u32, 6 + i % 5) };
            // The CPU chooses from logits, else the device.
            let options = GenerateOptions { logprobs: (i % 4 < 2).then_some(0), speculate, ..options };
            let prompt: Vec<u32> =
                f.tokens.iter().cycle().skip(i % 3).take(3 + 29 * (i % 4)).copied().collect();
            handle.generate(Request::new(prompt, options)).expect("a request that fits")
        };
        let ask = |handle: &Handle, i: usize| ask_with(handle, i, None);
        let handle = service();
        let alone: Vec<_> = (0..32).map(|i| outcome(ask(&handle, i))).collect();
        assert!(alone.iter().all(|answer| !answer.is_empty()), "{device}: {alone:?}");
        let drafts = Speculation { n_max: 4, n_match: 1, ..Speculation::default() };
        let mut n_drafted = 0;
        for (i, alone) in alone.iter().enumerate().take(8) {
            let (drafted, n) = read(ask_with(&handle, i, Some(drafts)));
            assert_eq!(drafted, *alone, "{device}: request {i} with drafts");
            n_drafted += n;
        }
        assert!(n_drafted > 0, "{device}: nothing was drafted");
        for n in [1, 2, 7, 32] {
            for backwards in [false, true] {
                let handle = service();
                let mut order: Vec<usize> = (0..n).collect();
                if backwards {
                    order.reverse();
                }
                let mut answers: Vec<_> = order.into_iter().map(|i| (i, ask(&handle, i))).collect();
                if n > 4 {
                    (0..n).step_by(5).rev().for_each(|at| drop(answers.remove(at)));
                }
                for (i, answer) in answers {
                    assert_eq!(outcome(answer), alone[i], "{device}: request {i} of {n}, {backwards}");
                }
            }
        }
    }
}
