//! Answers that lose their device and continue on another produce the same text.

use chaski::options::Speculation;
use chaski::serve::Event;
use chaski::{Engine, GenerateOptions, Generation, Grammar, SamplerParams};

use crate::common::{Failures, Timed, block_on, build, chain, default_engine, full, greedy, one_in, text};
use crate::serve::{outcome, ready, seeded};

const PROMPT: &str = "Once upon a time";
const N: usize = 24;

/// Text and tokens of an answer that loses its device after these numbers of pieces.
fn interrupted(engine: &mut Engine, options: GenerateOptions, losses: &[usize]) -> (String, Vec<u32>) {
    let mut text = String::new();
    engine.clear();
    let mut g = engine.generate(PROMPT, options).expect("a generation");
    let mut take = |g: &mut Generation<'_>, n: usize| {
        for _ in 0..n {
            let piece = block_on(g.next());
            let piece = piece.unwrap_or_else(|e| panic!("{text:?}, losses {losses:?}: {}", chain(&e)));
            match piece {
                Some(piece) => text.push_str(&piece.text),
                None => return true,
            }
        }
        false
    };
    for n in losses {
        if take(&mut g, *n) {
            break;
        }
        g.executor().gpu().expect("a GPU").destroy();
    }
    assert!(take(&mut g, usize::MAX), "it ends");
    let tokens = g.tokens().to_vec();
    (text, tokens)
}

#[test]
fn answers_go_on_as_if_nothing_had_happened() {
    let _t = Timed::new("interrupted answers");
    let mut failures = Failures::default();
    let mut engine = build(default_engine().context(96));
    let drawn = SamplerParams { seed: Some(5), ..SamplerParams::default() };
    let penalised = SamplerParams { penalty_repeat: 1.3, penalty_last_n: 32, ..drawn.clone() };
    let with = |sampler: SamplerParams| GenerateOptions { sampler, ..greedy(N) };
    // Two per readback, so that some are known but not yet delivered.
    let by_two = |options: GenerateOptions| GenerateOptions { interval: 2, ..options };
    let ways = [
        ("greedy", by_two(greedy(N))),
        ("drawn by the device", by_two(with(drawn.clone()))),
        ("with penalties", by_two(with(penalised))),
        ("sampled by the CPU", GenerateOptions { logprobs: Some(0), ..with(drawn.clone()) }),
        ("guessed", GenerateOptions { speculate: Some(Speculation::default()), ..with(drawn) }),
        ("stopped", GenerateOptions { stop: vec![" with".into()], ..greedy(N) }),
        ("constrained", GenerateOptions { grammar: Some(Grammar::Regex("[a-z ,]{30}".into())), ..greedy(N) }),
        ("shifted", GenerateOptions { shift: Some(2), max_tokens: Some(120), ..greedy(0) }),
    ];
    for (way, mut options) in one_in(2, ways) {
        options.sampler.ignore_eos = options.shift.is_some();
        let whole = interrupted(&mut engine, options.clone(), &[]);
        assert!(whole.0.len() > 10, "{way}: {whole:?}");
        let losses: &[&[usize]] = match way {
            "shifted" => &[&[60, 45]],
            "greedy" => &[&[0], &[1, 1, 4]],
            _ => &[&[4]],
        };
        for losses in losses {
            let found = interrupted(&mut engine, options.clone(), losses);
            failures.check(found == whole, || {
                format!("{way}, lost after {losses:?}: {found:?} and not {whole:?}")
            });
        }
    }
    failures.conclude();
}

/// A service loses its device while three answers and a prompt are under way: all of them go on.
#[test]
fn all_requests_of_a_service_go_on_as_if_nothing_had_happened() {
    let _t = Timed::new("interrupted service");
    let engine = |n| default_engine().sequences(n).context(384).chunk(16);
    let story =
        "Once upon a time there was a little girl who had a red ball. She liked to play in the park. ";
    let words = Some(Grammar::Regex("[a-z ,]{30}".into()));
    let requests = [
        ("greedy", PROMPT.to_owned(), greedy(14)),
        ("seeded", "One day, Lily".to_owned(), seeded(5, 14)),
        ("constrained", PROMPT.to_owned(), GenerateOptions { grammar: words, ..greedy(14) }),
        ("a long prompt", story.repeat(if full() { 8 } else { 6 }) + "One day she", greedy(6)),
    ];
    let mut single = build(engine(1));
    let expected = requests.each_ref().map(|(way, prompt, options)| {
        text(&mut single, prompt, options.clone()).unwrap_or_else(|e| panic!("{way}: {}", chain(&e)))
    });
    let (handle, mut driver) = build(engine(4)).serve();
    let mut answers = requests
        .each_ref()
        .map(|(_, prompt, options)| handle.generate(prompt, options.clone()).expect("a request that fits"));
    let mut found = [const { String::new() }; 4];
    let mut n_sent = 0;
    while answers[..3].iter().any(|answer| answer.stats().n_token < 2) {
        assert!(block_on(driver.turn()).expect("a step"), "four requests are open");
        for (answer, found) in answers.iter_mut().zip(&mut found) {
            for event in ready(answer) {
                match event {
                    Event::Started { on_cpu, .. } => assert_eq!(on_cpu, None, "the device chooses"),
                    Event::Prompt { n_sent: n } => n_sent = n,
                    Event::Piece(piece) => found.push_str(&piece.text),
                    other => panic!("{other:?} after a few tokens"),
                }
            }
        }
    }
    // Another step of the prompt is to come.
    let n_prompt = answers[3].stats().n_prompt;
    assert!(n_sent > 0 && n_sent + 16 < n_prompt, "{n_sent} of {n_prompt} tokens of the prompt were sent");
    driver.executor().gpu().expect("a GPU").destroy();
    let thread = driver.spawn().expect("a thread");
    let mut failures = Failures::default();
    for (i, (answer, mut found)) in answers.into_iter().zip(found).enumerate() {
        let rest = outcome(answer);
        found += &rest.text;
        failures.same_text(requests[i].0, &found, &expected[i]);
        failures.check(rest.finish.is_some() && !rest.text.is_empty(), || {
            format!("{}: {rest:?} after the loss", requests[i].0)
        });
    }
    assert_eq!(handle.load().n_recovered, 1);
    drop(handle);
    thread.join().expect("no panic").expect("no error");
    failures.conclude();
}
