//! Answers that lose their device and continue on another produce the same text.

use chaski::options::Speculation;
use chaski::{Engine, GenerateOptions, Generation, Grammar, SamplerParams};

use crate::common::{Failures, Timed, block_on, build, chain, default_engine, greedy, one_in};

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
