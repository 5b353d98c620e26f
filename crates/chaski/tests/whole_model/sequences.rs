//! Several sequences: in one batch, with shared pages, and in windows whose pages are reused.

use chaski::gguf::OwnedValue;
use chaski::kernels::FeatureSet;
use chaski::steps::Runner;
use chaski::{GenerateOptions, KvType};
use chaski_models::serve::{Generation, Request, serve};
use chaski_models::{RunnerConfig, Target};

use crate::archs::{Fixture, GELU, open, wanted};
use crate::common::{Failures, Timed, block_on, full, left_for_full, nmse, one_in, say, shared_gpu, targets};

/// Every kind of cache and state, with the tolerance, which is that of a single sequence.
const FAMILIES: &[(&str, f64)] = &[
    ("llama-gqa-rope_freqs", 2e-11),
    ("qwen3moe-moe", 2e-11),
    ("gemma3-dense", GELU),
    ("gpt-oss-moe", 2e-11),
    ("gpt2-dense", GELU),
    ("deepseek2-moe", 1e-11),
    // For single tokens, where the sparse activation may flip a value.
    ("gemma3n-dense", 3e-6),
    // For single tokens, too: 1.6e-4 where a text has 3e-5.
    ("gemma4-moe", 5e-4),
    ("mamba2-dense", 4e-11),
    ("mamba-dense", 4e-11),
    ("falcon-h1-dense", 4e-11),
    ("qwen3next-heads", 4e-11),
    ("lfm2-window", 4e-11),
    ("qwen35-heads", 4e-11),
];

fn runner(file: Vec<u8>, target: &Target, config: RunnerConfig) -> Runner {
    let model = open(file).expect("a fixture is a model");
    block_on(Runner::load(&model, target, &config, |_| {})).expect("a fixture loads")
}

/// The same text in three sequences at different positions: each token's logits are those of the text, whatever else is
/// in the batch. One shares the prefix of another, and both continue.
#[test]
fn sequences_of_a_batch_do_not_see_each_other() {
    let _t = Timed::new("sequences, batches");
    let mut failures = Failures::default();
    for (nth, (name, limit)) in FAMILIES.iter().enumerate().filter(|(_, f)| wanted(f.0)) {
        let f = Fixture::load(name);
        let n_vocab = f.n_vocab;
        // By default the first family on a GPU.
        let n_device = if full() || nth == 0 { 3 } else { 1 };
        for (device, target) in targets().into_iter().take(n_device) {
            let config =
                RunnerConfig { n_ctx: 80, n_seq: 3, chunk: 8, kv: KvType::F32, ..RunnerConfig::default() };
            let mut r = runner(f.gguf(false, &|_, _| {}), &target, config);
            let mut worst = 0.0f64;
            let mut compare = |what: &str, logits: &[f32], from: usize| {
                let e = nmse(logits, f.logits_of(from, from + logits.len() / n_vocab));
                worst = worst.max(e);
                failures.check(e <= *limit, || format!("{name}, {device}, {what}: {e:.1e} > {limit:.0e}"));
            };
            r.select(1);
            compare("a prompt", &block_on(r.eval_all(&f.tokens[..13], 8)).expect("13 tokens"), 0);
            // Two tokens of the first sequence for each of the second.
            for i in 0..16 {
                let columns = [(0, f.tokens[2 * i]), (1, f.tokens[13 + i]), (0, f.tokens[2 * i + 1])];
                let logits = block_on(r.eval_columns(&columns)).expect("three tokens");
                let of = |i: usize| &logits[i * n_vocab..][..n_vocab];
                compare("of two", of(0), 2 * i);
                compare("of one", of(1), 13 + i);
                compare("of two", of(2), 2 * i + 1);
            }
            assert_eq!((r.history_of(0), r.history_of(1)), (&f.tokens[..32], &f.tokens[..29]));
            // The third shares 27 tokens of the first, which continues; then it continues, and last the first is
            // rewound.
            let shared = r.share(0, 2, 27);
            assert_eq!(shared, if r.has_state() { 0 } else { 27 }, "{name}");
            for i in 0..12 {
                let columns = [(0, f.tokens[32 + i]), (2, f.tokens[shared + i])];
                let logits = block_on(r.eval_columns(&columns)).expect("two tokens");
                compare("after a share, the one", &logits[..n_vocab], 32 + i);
                compare("after a share, the other", &logits[n_vocab..], shared + i);
            }
            r.select(0);
            r.truncate(20);
            compare("set back", &block_on(r.eval_all(&f.tokens[20..40], 8)).expect("20 tokens"), 20);
            r.select(2);
            let at = shared + 12;
            compare("the other", &block_on(r.eval_all(&f.tokens[at..at + 5], 8)).expect("5 tokens"), at);
            say(format!("{name:16} {device:10} worst NMSE {worst:.1e}"));
        }
    }
    failures.conclude();
}

/// Two sequences of a model in the same batches, one of which is rewound by three tokens; returns the error of all
/// logits.
pub(crate) fn interleaved(r: &mut Runner, f: &Fixture) -> f64 {
    for seq in [0, 1] {
        r.select(seq);
        r.truncate(0);
    }
    block_on(r.feed(&f.tokens[..9])).expect("9 tokens run");
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    let mut columns = |r: &mut Runner, at: [usize; 2]| {
        let two = [(0, f.tokens[at[0]]), (1, f.tokens[at[1]])];
        found.extend(block_on(r.eval_columns(&two)).expect("two tokens"));
        at.iter().for_each(|i| expected.extend_from_slice(f.logits_of(*i, i + 1)));
    };
    (0..12).for_each(|i| columns(r, [i, 9 + i]));
    r.select(0);
    r.truncate(9);
    (0..5).for_each(|i| columns(r, [9 + i, 21 + i]));
    nmse(&found, &expected)
}

/// Recurrent state of every kind, in the sequences of a batch.
#[test]
fn states_of_a_batch_are_those_of_its_sequences() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("sequences, recurrent state");
    let mut failures = Failures::default();
    let target = Target::Gpu(shared_gpu(FeatureSet::Sg, false));
    // By default, those that run alone on the CPU only (`recurrent`).
    let skipped = usize::from(!full());
    for name in one_in(4, crate::recurrent::FIXTURES.iter().skip(skipped)).filter(|f| wanted(f)) {
        let f = Fixture::load(name);
        let config =
            RunnerConfig { n_ctx: 64, n_seq: 2, chunk: 16, kv: KvType::F32, ..RunnerConfig::default() };
        let e = interleaved(&mut runner(f.gguf(false, &|_, _| {}), &target, config), &f);
        say(format!("{name:24} two sequences: NMSE {e:.1e}"));
        failures.check(e <= 4e-11, || format!("{name}: {e:.2e}"));
    }
    failures.conclude();
}

/// A long sequence in a model with windows of 40 tokens: its layers keep few pages, and rewound sequences can continue.
#[test]
fn windows_give_their_pages_back() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("sequences, windows");
    let mut failures = Failures::default();
    let f = Fixture::load("gemma3-dense");
    let edit = |metadata: &mut Vec<(String, OwnedValue)>, _: &mut Vec<(String, Vec<u64>)>| {
        metadata.retain(|(k, _)| !k.contains("sliding_window"));
        metadata.push(("gemma3.attention.sliding_window".into(), 40u32.into()));
        metadata.push(("gemma3.attention.sliding_window_pattern".into(), 2u32.into()));
    };
    let n_vocab = f.logits_of(0, 1).len();
    let tokens: Vec<u32> = (0..400u32).map(|i| (i * i * 7 + i * 3) % n_vocab as u32).collect();
    let config = RunnerConfig { n_ctx: 640, n_seq: 2, chunk: 16, kv: KvType::F32, ..RunnerConfig::default() };
    let mut cpu = runner(f.gguf(false, &edit), &Target::Cpu, config.clone());
    let expected = block_on(cpu.eval_all(&tokens, 100)).expect("400 tokens run");
    let model = open(f.gguf(false, &edit)).expect("a fixture is a model");
    // Keys of all heads, as wide as values.
    let cell = u64::from(model.config().n_head_kv[0] * model.config().d_head);
    for (device, target) in &targets()[1..] {
        let mut r = runner(f.gguf(false, &edit), target, config.clone());
        let mut compare = |what: &str, logits: &[f32], from: usize| {
            let e = nmse(logits, &expected[from * n_vocab..][..logits.len()]);
            say(format!("{device}, {what}: NMSE {e:.1e}"));
            failures.check(e <= GELU, || format!("{device}, {what}: {e:.1e}"));
        };
        let all = block_on(r.eval_all(&tokens[..350], 16)).expect("350 tokens run");
        compare("pieces", &all, 0);
        // A little, and far more than there is room for.
        for back in [330, 200] {
            r.truncate(back);
            let rest = block_on(r.eval_all(&tokens[back..back + 20], 1)).expect("20 tokens run");
            compare("set back", &rest, back);
        }
        r.truncate(0);
        block_on(r.feed(&tokens[..350])).expect("350 tokens run");
        assert_eq!(r.share(0, 1, 345), 345);
        r.select(1);
        let rest = block_on(r.eval_all(&tokens[345..], 16)).expect("55 tokens run");
        compare("shared", &rest, 345);
        r.select(0);
        let rest = block_on(r.eval_all(&tokens[350..], 16)).expect("50 tokens run");
        compare("after the share", &rest, 350);
        // 10 pages of 64 tokens for each of two sequences, and two for windows; and a scratch page.
        let found = r.memory().items.iter().find(|i| i.what == "kv cache").map(|i| i.n_byte);
        let page = 64 * 4 * 2 * cell;
        assert_eq!(found, Some((2 * 10 + 2 * 2 + 1) * page), "{device}");
    }
    failures.conclude();
}

/// Sequences of all kinds restored in a freshly loaded runner continue bit for bit; damaged data changes nothing.
#[test]
fn sequences_are_saved_and_restored() {
    let _t = Timed::new("sequences, sessions");
    let mut failures = Failures::default();
    let q8_0 = KvType::both(chaski::gguf::GgmlType::Q8_0);
    let families = [("gemma3-dense", q8_0), ("deepseek2-moe", KvType::F16), ("falcon-h1-dense", KvType::F32)];
    for (nth, (name, kv)) in families.into_iter().enumerate() {
        let f = Fixture::load(name);
        // By default the first family on a GPU.
        let n_device = if full() || nth == 0 { 2 } else { 1 };
        for (device, target) in &targets()[..n_device] {
            let load = |n_seq, kv| {
                let config = RunnerConfig { n_ctx: 80, n_seq, chunk: 8, kv, ..RunnerConfig::default() };
                runner(f.gguf(false, &|_, _| {}), target, config)
            };
            let mut r = load(2, kv);
            r.select(1);
            block_on(r.feed(&f.tokens[..30])).expect("30 tokens run");
            r.truncate(27);
            let saved = block_on(r.save()).expect("the device is read");
            let go_on = |r: &mut Runner| block_on(r.eval_all(&f.tokens[27..40], 5)).expect("13 tokens run");
            let expected = go_on(&mut r);
            let mut other = load(1, kv);
            block_on(other.feed(&f.tokens[..5])).expect("5 tokens run");
            // Damaged data is rejected.
            let mut wrong = |what: &str, bytes: &[u8]| {
                let e = block_on(other.restore(bytes)).expect_err(what).to_string();
                assert!(e.contains("session"), "{what}: {e}");
                assert_eq!(other.history(), &f.tokens[..5], "{what}");
            };
            for n in (0..200).chain([saved.len() / 2, saved.len() - 1]) {
                wrong("cut off", &saved[..n]);
            }
            wrong("longer", &[&saved[..], &[0]].concat());
            let e = block_on(load(1, KvType::F32).restore(&saved)).map_err(|e| e.to_string());
            assert_eq!(e.is_err(), kv != KvType::F32, "{name}: a cache of another type");
            // Another fine-tune: the last bits of half of the weights differ.
            let mut tuned = f.gguf(false, &|_, _| {});
            let half = tuned.len() / 8 * 4;
            tuned[half..].iter_mut().step_by(4).for_each(|b| *b ^= 1);
            let config = RunnerConfig { n_ctx: 80, chunk: 8, kv, ..RunnerConfig::default() };
            let e = block_on(runner(tuned, target, config).restore(&saved)).expect_err("another model");
            assert!(e.to_string().contains("session is of"), "{e}");
            block_on(other.restore(&saved)).expect("a session");
            assert_eq!(other.history(), &f.tokens[..27]);
            let found = go_on(&mut other);
            failures.check(found == expected, || format!("{name}, {device}: other logits"));
        }
    }
    failures.conclude();
}

/// A session fits a smaller context if its tokens do, however long the sequence once was.
#[test]
fn sessions_are_as_long_as_their_tokens() {
    let f = Fixture::load("llama-plain");
    for (_, target) in targets() {
        let load = |n_ctx| {
            let config = RunnerConfig { n_ctx, chunk: 8, kv: KvType::F32, ..RunnerConfig::default() };
            runner(f.gguf(false, &|_, _| {}), &target, config)
        };
        let mut r = load(192);
        let many: Vec<u32> = f.tokens.iter().cycle().take(150).copied().collect();
        block_on(r.feed(&many)).expect("150 tokens run");
        let e = |r: &mut Runner, saved: &[u8]| block_on(r.restore(saved)).map_err(|e| e.to_string());
        let long = block_on(r.save()).expect("the device is read");
        assert!(e(&mut load(128), &long).is_err_and(|e| e.contains("150 tokens")));
        r.truncate(20);
        let short = block_on(r.save()).expect("the device is read");
        let expected = block_on(r.eval_all(&f.tokens[20..30], 5)).expect("10 tokens run");
        let mut smaller = load(128);
        e(&mut smaller, &short).expect("20 tokens fit");
        assert_eq!(block_on(smaller.eval_all(&f.tokens[20..30], 5)).expect("10 tokens run"), expected);
    }
}

/// The part of a prompt reported as cached is not run again: neither for state that cannot be rewound, nor for a window
/// that has moved on.
#[test]
fn what_has_to_run_again_does_not_count_as_cached() {
    let cases = [
        ("llama-plain", 40, 30, [30, 30, 30]),
        // The state is stored at the end of the prompt's last full page, and not before.
        ("mamba2-dense", 150, 100, [0, 0, 0]),
        ("mamba2-dense", 150, 140, [128, 128, 128]),
        // So are windows; the CPU keeps all tokens.
        ("gemma3-dense", 300, 100, [100, 0, 0]),
        ("gemma3-dense", 300, 290, [290, 256, 256]),
    ];
    for (nth, (name, n, back, expected)) in cases.into_iter().enumerate() {
        let f = Fixture::load(name);
        let tokens: Vec<u32> = f.tokens.iter().cycle().take(n).copied().collect();
        let other = [&tokens[..back], &[1, 2, 3]].concat();
        // By default the last turn of each family on a GPU.
        let n_device = if full() || nth == 0 { 3 } else { 1 };
        for ((device, target), expected) in targets().into_iter().zip(expected).take(n_device) {
            let model = open(f.gguf(false, &|_, _| {})).expect("a fixture is a model");
            let config = RunnerConfig { n_ctx: 400, chunk: 8, kv: KvType::F32, ..RunnerConfig::default() };
            let r = block_on(Runner::load(&model, &target, &config, |_| {})).expect("a fixture loads");
            let (handle, mut driver) = serve(r, model.shared_text().0, 1).expect("a service");
            let mut cached = |prompt: &[u32]| {
                let options = GenerateOptions { max_tokens: Some(3), ..GenerateOptions::default() };
                let answer = handle.generate(Request::new(prompt.to_vec(), options)).expect("a prompt");
                let mut g = Generation::new(&mut driver, answer);
                while block_on(g.next()).expect("a piece").is_some() {}
                (g.stats().n_cached, g.stats().n_prompt)
            };
            assert_eq!(cached(&tokens), (0, n), "{name}, {device}");
            assert_eq!(cached(&other), (expected, back + 3 - expected), "{name}, {device}, back to {back}");
        }
    }
}
