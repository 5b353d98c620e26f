//! A minimum of tokens, tokens that end answers, and a time limit.

use std::time::Duration;

use chaski_models::serve::{Event, Request, serve};
use chaski_models::{Ends, Finish, GenerateOptions, Stats};
use chaski_text::{Grammar, Sampler};

use crate::case::{Case, MAX_WAITING, alone, check, greedy, on_cpu, run, seeded};
use crate::fake::{self, ALL, EOS, Fake, Habits, N_VOCAB, limits, tokenizer};
use crate::tasks::run_all;
use crate::{at_once, drafted, prompt, spelled};

/// Ends an answer in the tests.
const STOP: u32 = 9;

fn ending(min_tokens: usize, options: GenerateOptions) -> GenerateOptions {
    let ends = Ends { min_tokens, stop_tokens: vec![STOP], max_time: None };
    GenerateOptions { ends, max_tokens: Some(30), ..options }
}

/// The expected answer and its end, by a loop over the fake's choices.
fn by_hand(prompt: &[u32], options: &GenerateOptions) -> (Vec<u32>, Finish) {
    let sampler = Sampler::new(options.sampler.clone(), &tokenizer());
    let (mut seen, mut answer) = (prompt.to_vec(), Vec::new());
    while answer.len() < 30 {
        let early = answer.len() < options.ends.min_tokens;
        let mask = if early { ALL & !(1 << EOS) & !(1 << STOP) } else { ALL };
        match fake::choose(&sampler, &seen, &[1.0, 1.0], answer.len(), mask) {
            EOS | STOP => return (answer, Finish::Stop),
            token => {
                seen.push(token);
                answer.push(token);
            }
        }
    }
    (answer, Finish::Length)
}

#[test]
fn no_end_is_chosen_before_the_minimum_on_the_device_and_on_the_cpu() {
    let mut lengths = std::collections::BTreeSet::new();
    for i in 0..12 {
        for min_tokens in [0, 1, 6, 20] {
            for options in [greedy(), seeded(i)] {
                let options = ending(min_tokens, options);
                let prompt = prompt(u64::from(i), 7);
                let (expected, finish) = by_hand(&prompt, &options);
                assert!(expected.len() >= min_tokens);
                let with_logits = GenerateOptions { logprobs: Some(1), ..options.clone() };
                for options in [options.clone(), with_logits, drafted(options)] {
                    let found = alone(&Request::new(prompt.clone(), options), 64);
                    assert_eq!((&found.tokens, found.finish), (&expected, Some(finish)), "{min_tokens}, {i}");
                    assert_eq!(found.text, spelled(&expected));
                }
                lengths.insert(expected.len());
            }
        }
    }
    assert!(lengths.len() > 8, "answers end in many places: {lengths:?}");
}

#[test]
fn the_device_runs_ahead_after_the_minimum() {
    let of = |min_tokens| {
        let (mut n_masked, mut n_repeated) = (0, 0);
        for seed in 0..6 {
            let ends = Ends { min_tokens, ..Ends::default() };
            let options = GenerateOptions { ends, max_tokens: Some(30), interval: 4, ..seeded(seed) };
            let case = Case { request: Request::new(prompt(1, 9), options), delay: 0, leaves: None };
            let habits = Habits { n_more_under_way: 1, n_pending: 1, ..Habits::default() };
            let fake = run(1, limits(), habits, &[case]).executor.expect("a device");
            (n_masked, n_repeated) = (n_masked + fake.n_masked, n_repeated + fake.n_repeated);
        }
        (n_masked, n_repeated)
    };
    // A row may be under way when the last token of the minimum comes.
    let (n_masked, n_repeated) = of(5);
    assert!((30..=36).contains(&n_masked) && n_repeated > 2, "{n_masked} masks, {n_repeated} repeated");
    let (n_masked, n_always) = of(0);
    assert!(n_masked == 0 && n_always > n_repeated, "{n_masked} masks, {n_always} repeated");
}

#[test]
fn answers_with_a_minimum_are_the_same_beside_others() {
    let case = |i: u64| {
        let options = match i % 3 {
            0 => ending(i as usize, seeded(i as u32)),
            1 => GenerateOptions { max_tokens: Some(20), ..on_cpu(i as u32) },
            _ => ending(i as usize, on_cpu(i as u32)),
        };
        Case { request: Request::new(prompt(i, 5), options), delay: i as usize, leaves: None }
    };
    let cases: Vec<Case> = (0..12).map(case).collect();
    for limits in [limits(), chaski_schedule::Limits { n_page: 16, ..limits() }] {
        let habits = Habits { n_more_under_way: 2, n_pending: 2, lost_at: vec![60], ..Habits::default() };
        let n_ctx = limits.n_ctx;
        check(&cases, &run(5, limits, habits, &cases), n_ctx);
    }
}

#[test]
fn the_statistics_tell_the_token_that_ended_an_answer() {
    let mut told = [0, 0];
    for i in 0..12 {
        let (found, _) = at_once(vec![ending(4, seeded(i))]);
        let Stats { n_token, stop_token, .. } = &found[0].1;
        assert!([None, Some(STOP)].contains(stop_token), "{stop_token:?} after {n_token}");
        told[usize::from(stop_token.is_some())] += 1;
    }
    assert!(told.iter().all(|n| *n > 0), "{told:?}");
}

#[test]
fn stop_strings_count_after_the_minimum() {
    let long = ending(16, seeded(8));
    let whole = alone(&Request::new(prompt(3, 6), long.clone()), 64).text;
    let stop = whole[..2].to_owned();
    let again = whole.get(16..).and_then(|rest| rest.find(&stop)).map_or(whole.len(), |at| at + 16);
    let found = alone(&Request::new(prompt(3, 6), GenerateOptions { stop: vec![stop], ..long }), 64);
    assert_eq!(found.text, whole[..again]);
}

#[test]
fn a_grammar_that_allows_nothing_else_ends_before_the_minimum() {
    let grammar = Some(Grammar::Regex("ab".into()));
    for options in [greedy(), on_cpu(1)] {
        let options = GenerateOptions { grammar: grammar.clone(), ..ending(9, options) };
        let found = alone(&Request::new(prompt(1, 5), options), 64);
        assert_eq!((found.text.as_str(), found.finish), ("ab", Some(Finish::Stop)));
    }
    // One that can end, or go on, goes on.
    let grammar = Some(Grammar::Regex("(ab)+".into()));
    for options in [greedy(), on_cpu(1)] {
        let options = GenerateOptions { grammar: grammar.clone(), ..ending(9, options) };
        let found = alone(&Request::new(prompt(1, 5), options), 64);
        assert!(found.text.len() >= 10 && found.text.starts_with("abababab"), "{found:?}");
    }
}

#[test]
fn unknown_tokens_are_refused() {
    let ends = Ends { stop_tokens: vec![STOP, N_VOCAB], ..Ends::default() };
    let found = alone(&Request::new(prompt(1, 5), GenerateOptions { ends, ..greedy() }), 64);
    assert!(found.error.is_some_and(|e| e.contains(&format!("token {N_VOCAB}"))));
}

/// The vocabulary of the fake has no line break: only the text of another would end the answer.
#[test]
fn time_alone_ends_nothing() {
    let ends = Ends { max_time: Some(Duration::ZERO), ..Ends::default() };
    let options = GenerateOptions { max_tokens: Some(12), ends, ..seeded(8) };
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes");
    let caller = async move {
        let mut answer = handle.generate(Request::new(prompt(3, 6), options)).expect("a prompt");
        drop(handle);
        let mut finish = None;
        while let Some(event) = answer.next().await {
            if let Event::Finished { finish: found, stats } = event {
                finish = Some((found, stats.n_token));
            }
        }
        assert_eq!(finish, Some((Finish::Length, 12)));
    };
    run_all(1, vec![Box::pin(caller), Box::pin(async { drop(driver.run().await.expect("a device")) })]);
}
