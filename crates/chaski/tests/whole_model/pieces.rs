//! Prompts in time-bounded pieces: the same results, and cancellation between two of them.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chaski::{Engine, GenerateOptions};

use crate::common::{Failures, Timed, block_on, build, default_engine, full, gpu_sets, greedy, one_in, text};
use crate::golden_text::{ANSWER, PROMPT};

const HOUR: Duration = Duration::from_secs(3600);

fn bound(engine: &mut Engine, bound: Duration) {
    engine.runner().set_prompt_bound(bound);
}

fn submits(engine: &Engine) -> u64 {
    engine.gpu().expect("a GPU").counters().submits.load(Ordering::Relaxed)
}

/// A prompt of `n` tokens.
fn tokens(n: u32) -> Vec<u32> {
    (0..n).map(|i| 1 + (i * 37 + i * i) % 1000).collect()
}

#[test]
fn pieces_of_any_size_give_the_same_bits() {
    let _t = Timed::new("pieces, the same bits");
    let mut failures = Failures::default();
    for (nth, set) in gpu_sets().iter().copied().enumerate() {
        let mut engine = build(default_engine().feature_set(set));
        // Last chunks of one token, of two, and others; pieces of few tokens; a prompt of several chunks.
        let sizes = [(300, 512), (257, 256), (65, 512), (258, 256), (200, 48), (70, 512)];
        for (n, chunk) in one_in(sizes.len(), sizes.into_iter().skip(if full() { 0 } else { nth + 2 })) {
            if chunk != 512 {
                engine = build(default_engine().feature_set(set).chunk(chunk));
            }
            let prompt = tokens(n);
            let mut expected: Option<Vec<f32>> = None;
            // First without measurements, then one piece per chunk, then the smallest pieces.
            for (way, limit) in
                [("first", Duration::from_millis(100)), ("whole", HOUR), ("tiny", Duration::ZERO)]
            {
                bound(&mut engine, limit);
                engine.runner().truncate(0);
                let before = submits(&engine);
                block_on(engine.runner().prefill(&prompt)).expect("a prompt");
                let sent = submits(&engine) - before;
                let found = block_on(engine.runner().logits()).expect("logits");
                let case = format!("{n} tokens in chunks of {chunk}, set {}, {way}", set.word());
                let n_chunk = u64::from(n.div_ceil(chunk));
                match way {
                    "whole" => failures.check(sent == n_chunk, || format!("{case}: {sent} submissions")),
                    "tiny" => failures.check(sent > 40 * n_chunk, || format!("{case}: {sent} submissions")),
                    _ => {}
                }
                let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                match &expected {
                    None => expected = Some(found),
                    Some(e) => failures.check(bits(e) == bits(&found), || format!("{case}: other logits")),
                }
            }
        }
    }
    failures.conclude();
}

#[test]
fn pieces_follow_the_time_they_take() {
    let _t = Timed::new("pieces, times");
    let mut engine = build(default_engine());
    let prompt = tokens(300);
    let mut run = |limit| {
        bound(&mut engine, limit);
        engine.runner().truncate(0);
        let (before, start) = (submits(&engine), Instant::now());
        block_on(engine.runner().prefill(&prompt)).expect("a prompt");
        let sent = submits(&engine) - before;
        block_on(engine.runner().gpu().expect("a model on a GPU").finish()).expect("the device is well");
        (sent, start.elapsed())
    };
    run(HOUR);
    let (one, whole) = run(HOUR);
    // A sixteenth of the time needs about sixteen submissions, fewer if the measured run was slow.
    let (many, _) = run(whole / 16);
    let (again, _) = run(HOUR);
    crate::common::say(format!("{whole:?} in one submission, or {many} of a sixteenth"));
    assert_eq!((one, again), (1, 1), "submissions of a chunk within its bound");
    assert!((4..200).contains(&many), "{many} submissions");
}

#[test]
fn a_profile_leaves_no_trace_in_what_follows() {
    let _t = Timed::new("pieces, after a profile");
    let mut engine = build(default_engine());
    for n_col in [1, 5] {
        let profile = block_on(engine.runner().profile(n_col, 0, 3))
            .expect("a profile")
            .expect("a device with timestamps");
        let made: u32 = profile.rows.iter().map(|r| r.count).sum();
        assert!(made as usize == profile.events.len() && made > 5, "{made} dispatches");
    }
    let found = text(&mut engine, PROMPT, greedy(32)).expect("a text");
    assert!(ANSWER.starts_with(&found) && found.len() > 100, "{found:?}");
}

#[test]
fn a_prompt_can_be_left_between_pieces() {
    let _t = Timed::new("pieces, left in between");
    let mut engine = build(default_engine());
    let prompt = tokens(if full() { 400 } else { 200 });
    let mut failures = Failures::default();
    for (n_piece, interval) in one_in(2, [(0, 1), (1, 4), (3, 16)]) {
        engine.clear();
        bound(&mut engine, Duration::ZERO);
        let options = GenerateOptions { interval, ..greedy(8) };
        let mut g = engine.generate_tokens(&prompt, options).expect("a generation");
        for _ in 0..n_piece {
            assert!(
                block_on(g.prompt()).expect("a piece of the prompt"),
                "there should be more of the prompt"
            );
        }
        drop(g);
        // Continuing after an interruption gives the result of an uninterrupted run, either way.
        let mut answers = Vec::new();
        for by_pieces in [true, false] {
            if !by_pieces {
                engine.clear();
                bound(&mut engine, HOUR);
            }
            let mut g = engine.generate_tokens(&prompt, greedy(8)).expect("a generation");
            while by_pieces && block_on(g.prompt()).expect("a piece of the prompt") {}
            while block_on(g.next()).expect("a piece").is_some() {}
            let cached = g.stats().n_cached;
            let is_expected = match by_pieces {
                true => cached >= n_piece && cached < prompt.len() && (cached > 0) == (n_piece > 0),
                false => cached == 0,
            };
            failures.check(is_expected, || format!("{n_piece} pieces: {cached} tokens not run again"));
            answers.push(g.tokens().to_vec());
        }
        failures.check(answers[0] == answers[1] && !answers[0].is_empty(), || {
            format!("{n_piece} pieces: {:?} and {:?}", answers[0], answers[1])
        });
        bound(&mut engine, Duration::ZERO);
        let found = text(&mut engine, PROMPT, greedy(16)).expect("a text");
        failures.check(!found.is_empty() && ANSWER.starts_with(&found), || format!("{found:?}"));
    }
    failures.conclude();
}
