//! The service over a fake executor: the outcome of a request does not depend on what runs beside it, on departing
//! callers, or on device losses.

mod case;
mod embed;
mod ends;
mod fake;
mod insert;
mod random;
mod reasoning;
mod steps;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use case::{Case, MAX_WAITING, alone, check, constrained, greedy, masked, on_cpu, read, run, seeded};
use chaski_models::serve::{Answer, Driver, Event, Handle, Readings, Request, ServeError, serve};
use chaski_models::{Embedding, Finish, GenerateOptions, ModelError, Speculation, Stats};
use chaski_schedule::Limits;
use chaski_text::{Grammar, Sampler, SamplerParams};
use fake::{ALL, EOS, Fake, Habits, POISON, Yield, limits, mix, tokenizer};
use ggml_format::MaybeSend;
use tasks::run_all;

#[test]
fn handles_and_answers_go_to_any_thread() {
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    fn is_sent<T: Send + Unpin + futures_core::Stream<Item = Event> + 'static>() {}
    fn is_driven<E: chaski_models::serve::Executor + 'static>(driver: Driver<E>) -> impl MaybeSend {
        driver.run()
    }
    is_shared::<Handle>();
    is_sent::<Answer>();
    fn is_awaited<T: Send + Unpin + Future>() {}
    is_awaited::<Readings<Embedding>>();
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes that fit");
    let running: Box<dyn Send> = Box::new(is_driven(driver));
    drop((handle, running));
}

/// A prompt of `n` letters with a common prefix.
fn prompt(seed: u64, n: usize) -> Vec<u32> {
    (0..n).map(|i| 3 + (if i < n / 2 { i as u64 } else { mix(seed ^ i as u64) } % 15) as u32).collect()
}

fn options(seed: u64) -> GenerateOptions {
    match seed % 5 {
        0 => greedy(),
        1 => constrained(),
        2 => on_cpu(seed as u32),
        3 => masked(seed as u32),
        _ => seeded(seed as u32),
    }
}

#[test]
fn text_does_not_depend_on_company() {
    for (n, leavers) in [(1, 0), (2, 0), (7, 0), (32, 0), (7, 2), (32, 3)] {
        for (seed, n_more) in [(1, 0), (2, 1), (3, 2)] {
            let case = |i: u64| {
                let r = mix(seed * 1000 + i);
                let options = GenerateOptions { max_tokens: Some(3 + r as usize % 40), ..options(i) };
                let request = Request::new(prompt(i, 1 + r as usize % 30), options);
                let leaves = (leavers > 0 && i % leavers == 0).then_some(r as usize / 64 % 40);
                Case { request, delay: r as usize / 4096 % 60, leaves }
            };
            let cases: Vec<Case> = (0..n).map(case).collect();
            let habits = Habits { n_more_under_way: n_more, n_pending: 3, ..Habits::default() };
            let left = run(seed, limits(), habits, &cases);
            check(&cases, &left, limits().n_ctx);
            let fake = left.executor.expect("the driver gives it back");
            assert!(n < 7 || fake.rows.iter().any(|n| *n > 3), "requests run together: {:?}", fake.rows);
            assert_eq!((left.load.n_waiting, left.load.n_running, left.load.pages.n_used), (0, 0, 0));
            assert!(left.load.n_cached() > 0);
        }
    }
}

#[test]
fn text_survives_a_pool_that_is_too_small() {
    let limits = Limits { n_page: 16, ..limits() };
    let case = |i: u64| {
        let options =
            GenerateOptions { max_tokens: Some(40), sampler: ignoring_ends(i as u32), ..options(i) };
        Case { request: Request::new(prompt(i, 9), options), delay: 2 * i as usize, leaves: None }
    };
    let cases: Vec<Case> = (0..8).map(case).collect();
    for n_more in 0..3 {
        let habits = Habits { n_more_under_way: n_more, n_pending: 1, ..Habits::default() };
        let left = run(n_more as u64, limits.clone(), habits, &cases);
        check(&cases, &left, limits.n_ctx);
        assert!(left.load.n_preempted > 0 && left.load.pages.n_used == 0, "{:?}", left.load);
    }
}

/// The expected answer, by a loop over the fake's choices.
fn by_hand(prompt: &[u32], options: &GenerateOptions, n_max: usize) -> Vec<u32> {
    let sampler = Sampler::new(options.sampler.clone(), &tokenizer());
    let (mut seen, mut answer) = (prompt.to_vec(), Vec::new());
    while answer.len() < n_max {
        match fake::choose(&sampler, &seen, &[1.0, 1.0], answer.len(), ALL) {
            EOS => break,
            token => {
                seen.push(token);
                answer.push(token);
            }
        }
    }
    answer
}

fn spelled(tokens: &[u32]) -> String {
    tokens.iter().map(|t| char::from(b'a' + (*t - 3) as u8)).collect()
}

#[test]
fn text_is_what_the_device_chooses() {
    let mut n_stop = 0;
    for i in 0..20 {
        for options in [greedy(), seeded(i)] {
            let options = GenerateOptions { max_tokens: Some(25), ..options };
            let prompt = prompt(u64::from(i), 7);
            let expected = by_hand(&prompt, &options, 25);
            let found = alone(&Request::new(prompt, options), 64);
            assert_eq!((&found.tokens, &found.text), (&expected, &spelled(&expected)));
            let is_whole = expected.len() == 25;
            assert_eq!(found.finish, Some(if is_whole { Finish::Length } else { Finish::Stop }));
            n_stop += usize::from(!is_whole);
        }
    }
    assert!((1..40).contains(&n_stop));
}

#[test]
fn the_cpu_chooses_the_best_token_as_the_device_does() {
    let with_logprobs = GenerateOptions { logprobs: Some(2), max_tokens: Some(20), ..greedy() };
    let device = GenerateOptions { max_tokens: Some(20), ..greedy() };
    let of = |options: GenerateOptions| Request::new(prompt(5, 9), options);
    assert_eq!(alone(&of(with_logprobs.clone()), 64), alone(&of(device.clone()), 64));
    // And its error says so.
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes that fit");
    let caller = async move {
        for (options, expected) in [
            (device, None),
            (with_logprobs, Some("log probabilities are asked for")),
            (constrained(), Some("top-k is off")),
            (masked(1), None),
            (on_cpu(1), Some("top-k is off")),
        ] {
            let mut answer = handle.generate(of(options)).expect("a prompt");
            let Some(Event::Started { on_cpu, .. }) = answer.next().await else { unreachable!("a start") };
            assert_eq!(on_cpu, expected);
            let Some(Event::Piece(piece)) = answer.next().await else { unreachable!("a piece") };
            assert_eq!(piece.logprobs.is_some(), expected.is_some_and(|e| e.starts_with("log")));
        }
    };
    run_all(1, vec![Box::pin(caller), Box::pin(async { drop(driver.run().await.expect("a device")) })]);
}

#[test]
fn answers_end_at_stop_strings_and_at_their_length() {
    let whole = by_hand(&prompt(3, 6), &seeded(8), 30);
    assert!(whole.len() > 12, "a long answer: {whole:?}");
    let text = spelled(&whole);
    let stop = text[6..9].to_owned();
    let before = &text[..text.find(&stop).expect("it is there")];
    let with_stop = GenerateOptions { stop: vec!["zz".into(), stop.clone()], ..seeded(8) };
    let found = alone(&Request::new(prompt(3, 6), with_stop), 64);
    assert_eq!((found.text.as_str(), found.finish), (before, Some(Finish::StopText)));
    for n in [0, 1, 5] {
        let short = GenerateOptions { max_tokens: Some(n), ..seeded(8) };
        let found = alone(&Request::new(prompt(3, 6), short), 64);
        assert_eq!((found.text.as_str(), found.finish), (&text[..n], Some(Finish::Length)));
    }
}

#[test]
fn constrained_answers_fit_their_grammar_beside_others() {
    let case = |i: u64| {
        let options = match i % 4 {
            0 => masked(i as u32 / 4),
            2 => constrained(),
            _ => seeded(i as u32),
        };
        Case { request: Request::new(prompt(i, 5), options), delay: i as usize, leaves: None }
    };
    let cases: Vec<Case> = (0..12).map(case).collect();
    let left = run(1, limits(), Habits { n_more_under_way: 1, n_pending: 2, ..Habits::default() }, &cases);
    check(&cases, &left, limits().n_ctx);
    for found in left.texts.iter().step_by(2) {
        assert!(found.text.starts_with("ab") || found.text.starts_with('c'), "{found:?}");
        assert!(found.text.chars().all(|c| c <= 'i'), "{found:?}");
    }
    let fake = left.executor.expect("a device");
    assert!(fake.n_repeated > 0, "others run ahead when those have ended");
    // Nothing goes ahead of a step whose logits are read, as those of every fourth case are.
    assert!(fake.n_masked_ahead * 3 > fake.n_masked, "{} of {}", fake.n_masked_ahead, fake.n_masked);
}

/// The best token of those that a grammar allows, wherever it is chosen.
#[test]
fn masks_leave_the_device_the_choice_that_the_cpu_makes() {
    for seed in 0..10 {
        let on_device = GenerateOptions { max_tokens: Some(25), ..masked(0) };
        let on_cpu = GenerateOptions { logprobs: Some(1), ..on_device.clone() };
        let of = |options| alone(&Request::new(prompt(seed, 6), options), 64);
        let found = of(on_device);
        assert_eq!(found, of(on_cpu));
        assert!(found.text.len() > 3 && found.error.is_none(), "{found:?}");
    }
}

/// Grammars that no token of the vocabulary goes on with.
#[test]
fn a_grammar_that_is_stuck_is_the_same_error_on_the_device_and_on_the_cpu() {
    for grammar in ["Z", "abZ"] {
        let on_device = GenerateOptions { grammar: Some(Grammar::Regex(grammar.into())), ..greedy() };
        let on_cpu = GenerateOptions { logprobs: Some(1), ..on_device.clone() };
        let of = |options| alone(&Request::new(prompt(1, 6), options), 64);
        let found = of(on_device);
        assert_eq!((found.error.is_some(), found.clone()), (true, of(on_cpu)), "{grammar}");
        // Those beside it go on.
        let case = |i: u64| {
            let options = if i == 1 {
                GenerateOptions { grammar: Some(Grammar::Regex(grammar.into())), ..greedy() }
            } else {
                seeded(i as u32)
            };
            Case { request: Request::new(prompt(1, 6), options), delay: 0, leaves: None }
        };
        let cases: Vec<Case> = (0..4).map(case).collect();
        let left = run(2, limits(), Habits { n_more_under_way: 1, ..Habits::default() }, &cases);
        check(&cases, &left, limits().n_ctx);
    }
}

#[test]
fn a_full_context_ends_an_answer_or_is_shifted() {
    // An answer longer than its context.
    let sampler = |seed| GenerateOptions { sampler: ignoring_ends(seed), ..GenerateOptions::default() };
    let n_ctx = 24;
    let short = Limits { n_ctx, ..limits() };
    let request = |i: u64, shift: Option<usize>| {
        let options = GenerateOptions { shift, max_tokens: shift.map(|_| 100), ..sampler(i as u32) };
        Request::new(prompt(i, 10), options)
    };
    let found = alone(&request(1, None), n_ctx);
    assert_eq!(
        (found.tokens.len(), found.finish, found.n_forgotten),
        (n_ctx + 1 - 10, Some(Finish::Context), 0)
    );
    let shifted = alone(&request(1, Some(4)), n_ctx);
    assert_eq!((shifted.tokens.len(), shifted.finish), (100, Some(Finish::Length)));
    assert!(shifted.n_forgotten > 50 && shifted.tokens.starts_with(&found.tokens));
    // The tokens after the first shift follow the remaining ones, and the draws continue.
    let before = [prompt(1, 10), found.tokens.clone()].concat();
    let left = [&before[..4], &before[4 + (before.len() - 4) / 2..]].concat();
    let next = fake::choose(
        &Sampler::new(sampler(1).sampler, &tokenizer()),
        &left,
        &[1.0; 2],
        found.tokens.len(),
        ALL,
    );
    assert_eq!(shifted.tokens[found.tokens.len()], next);
    // If nothing can be dropped, the answer ends.
    let all = alone(&request(1, Some(n_ctx)), n_ctx);
    assert_eq!((&all.tokens, all.finish), (&found.tokens, Some(Finish::Context)));

    // The same beside more requests than slots, on a device that is lost.
    let shift = |i: u64| if i % 3 == 0 { None } else { Some(i as usize % 5) };
    let case = |i: u64| Case { request: request(i, shift(i)), delay: 3 * i as usize, leaves: None };
    let mut cases: Vec<Case> = (0..9).map(case).collect();
    cases[4].request.options.logprobs = Some(1);
    let habits =
        Habits { n_more_under_way: 1, n_pending: 1, lost_at: vec![40, 80, 150], ..Habits::default() };
    let left = run(9, short, habits, &cases);
    check(&cases, &left, n_ctx);
    assert_eq!(left.executor.expect("a device").n_recovered, 3);
}

fn ignoring_ends(seed: u32) -> chaski_text::SamplerParams {
    chaski_text::SamplerParams { ignore_eos: true, ..seeded(seed).sampler }
}

#[test]
fn requests_that_cannot_be_served_are_refused_with_both_numbers() {
    let limits = Limits { max_waiting: 1, n_seq: 1, ..limits() };
    let (handle, driver) =
        serve(Fake::new(limits.clone(), Habits::default()), tokenizer(), limits.max_waiting).expect("sizes");
    let refused = |request: Request| match handle.generate(request) {
        Err(e) => (e.to_string(), e),
        Ok(answer) => unreachable!("{answer:?} of a bad request"),
    };
    let (text, e) = refused(Request::new(prompt(1, 65), greedy()));
    assert_eq!(text, "the prompt has 65 tokens, but the context has 64");
    assert!(matches!(e, ServeError::Refused(_)));
    assert_eq!(refused(Request::new(Vec::new(), greedy())).0, "the prompt has no tokens");
    assert_eq!(refused(Request::new(vec![20], greedy())).0, "token 20 is not in the vocabulary of 20");
    let grammar = Some(Grammar::Regex("a(".into()));
    let (_, e) = refused(Request::new(vec![4], GenerateOptions { grammar, ..greedy() }));
    assert!(matches!(&e, ServeError::Model(e) if matches!(**e, ModelError::Constraint(_))), "{e:?}");
    let sampled = |sampler| refused(Request::new(vec![4], GenerateOptions { sampler, ..greedy() })).0;
    let bias = SamplerParams { logit_bias: vec![(20, 1.0)], ..SamplerParams::greedy() };
    assert_eq!(sampled(bias), "the logit bias of token 20 is for none of the 20 tokens of the vocabulary");
    let penalty = SamplerParams { penalty_repeat: 0.0, ..SamplerParams::greedy() };
    assert_eq!(sampled(penalty), "`penalty_repeat` is 0, but must be more than 0 (1: off) and finite");
    // Refused requests do not count.
    let first = handle.generate(Request::new(vec![4], greedy())).expect("room for one that runs");
    let second = handle.generate(Request::new(vec![4], greedy())).expect("room for one that waits");
    assert_eq!((handle.load().n_waiting, handle.load().n_running), (2, 0));
    let (text, e) = refused(Request::new(vec![4], greedy()));
    assert_eq!(text, "the queue is full: 2 requests are running or waiting, and the limit is 2");
    assert!(matches!(e, ServeError::Busy { .. }));
    let caller = async move {
        let text = read(first).await;
        assert_eq!(text, alone(&Request::new(vec![4], greedy()), 64));
        let third = handle.generate(Request::new(vec![4], greedy())).expect("room again");
        assert_eq!((read(second).await, read(third).await), (text.clone(), text));
        // A wrong number of scales fails that request only.
        let lora = Some(vec![1.0; 3]);
        let wrong =
            handle.generate(Request::new(vec![4], GenerateOptions { lora, ..greedy() })).expect("a prompt");
        assert_eq!(read(wrong).await.error.as_deref(), Some("LoRA scales: 3, but at most 2"));
    };
    run_all(1, vec![Box::pin(caller), Box::pin(async { drop(driver.run().await.expect("a device")) })]);
    let e = serve(Fake::new(Limits { n_page: 3, ..limits }, Habits::default()), tokenizer(), MAX_WAITING)
        .expect_err("no room");
    assert!(e.to_string().contains("room for 12 tokens, but a context has 64"), "{e}");
}

/// Scales 0, 0.5 and 1 and the default at once, in any order of arrival, while others leave.
#[test]
fn lora_scales_are_those_of_their_request() {
    let lora = |i: u64| {
        let scales = [None, Some([1.0, 1.0]), Some([0.5, 0.0]), Some([0.0, 0.5]), Some([0.0, 0.0])];
        scales[i as usize % scales.len()].map(Vec::from)
    };
    for seed in 0..12 {
        let case = |i: u64| {
            let r = mix(seed * 100 + i);
            let options = GenerateOptions { lora: lora(i), max_tokens: Some(20), ..options(i / 5) };
            let leaves = (i >= 10 && i % 2 == 0).then_some(r as usize / 64 % 30);
            Case { request: Request::new(prompt(1, 9), options), delay: r as usize % 40, leaves }
        };
        let cases: Vec<Case> = (0..20).map(case).collect();
        let habits = Habits { n_more_under_way: seed as usize % 3, n_pending: 2, ..Habits::default() };
        let left = run(seed, limits(), habits, &cases);
        check(&cases, &left, limits().n_ctx);
        let fake = left.executor.expect("a device");
        assert!(fake.n_mixed > 5, "requests of different scales run together: {} steps", fake.n_mixed);
        let texts = left.texts;
        assert_eq!(texts[0], texts[1], "these are the default scales");
        assert!((2..5).all(|i| texts[i].text != texts[i - 1].text), "{texts:?}");
    }
}

#[test]
fn a_lost_device_loses_and_doubles_nothing() {
    let case = |i: u64| {
        let options = GenerateOptions { max_tokens: Some(30), ..options(i) };
        Case {
            request: Request::new(prompt(i, 4 + i as usize), options),
            delay: 5 * i as usize,
            leaves: None,
        }
    };
    let cases: Vec<Case> = (0..9).map(case).collect();
    // In each of the first calls, and in several of a run.
    for at in (1..60).map(|at| vec![at]).chain([vec![10, 30, 31, 70, 90], vec![5, 6, 7, 40]]) {
        let habits = Habits { n_more_under_way: 2, n_pending: 2, lost_at: at.clone(), ..Habits::default() };
        let left = run(at[0], limits(), habits, &cases);
        check(&cases, &left, limits().n_ctx);
        assert_eq!((left.load.n_recovered as usize, left.load.pages.n_used), (at.len(), 0), "{at:?}");
        assert_eq!(left.executor.expect("a device").n_recovered, at.len());
    }
}

#[test]
fn a_device_that_is_lost_for_good_ends_all_requests_and_later_ones() {
    let habits = Habits { lost_at: vec![30], cannot_recover: true, ..Habits::default() };
    let (handle, driver) = serve(Fake::new(limits(), habits), tokenizer(), MAX_WAITING).expect("sizes");
    let asked = |i| Request::new(prompt(i, 9), GenerateOptions { sampler: ignoring_ends(1), ..greedy() });
    let answers: Vec<Answer> = (0..9).map(|i| handle.generate(asked(i)).expect("a prompt")).collect();
    let expected = "the device was lost: call 30";
    let caller = async {
        for answer in answers {
            assert_eq!(read(answer).await.error.as_deref(), Some(expected));
        }
        let e = handle.generate(asked(1)).expect_err("no device");
        assert_eq!(e.to_string(), expected);
        assert_eq!(handle.load().n_waiting, 0);
    };
    let driver = async {
        let e = driver.run().await.err().expect("no device");
        assert!(matches!(e, ServeError::Model(_)), "{e:?}");
    };
    run_all(1, vec![Box::pin(driver), Box::pin(caller)]);
}

#[test]
fn a_request_that_always_loses_the_device_is_given_up() {
    let habits = Habits { deadly: Some(17), ..Habits::default() };
    let (handle, driver) = serve(Fake::new(limits(), habits), tokenizer(), MAX_WAITING).expect("sizes");
    let options = || GenerateOptions { max_tokens: Some(5), ..greedy() };
    let caller = async move {
        let deadly = handle.generate(Request::new(vec![4, 17], options())).expect("a prompt");
        assert!(read(deadly).await.error.expect("no answer").starts_with("the device was lost"));
        let next = Request::new(vec![4, 5], options());
        let answer = handle.generate(next.clone()).expect("a prompt");
        assert_eq!(read(answer).await, alone(&next, 64));
    };
    let driver = async { assert_eq!(driver.run().await.expect("a device").n_recovered, 2) };
    run_all(1, vec![Box::pin(driver), Box::pin(caller)]);
}

#[test]
fn logits_that_are_not_finite_end_their_request_alone() {
    let case = |i: u64| {
        let mut prompt = prompt(i, 12);
        if i % 3 == 1 {
            prompt[9] = POISON;
        }
        let options = GenerateOptions { max_tokens: Some(20), ..options(i) };
        Case { request: Request::new(prompt, options), delay: i as usize, leaves: None }
    };
    let cases: Vec<Case> = (0..12).map(case).collect();
    let left = run(3, limits(), Habits { n_more_under_way: 1, ..Habits::default() }, &cases);
    check(&cases, &left, limits().n_ctx);
    for (i, text) in left.texts.iter().enumerate() {
        assert_eq!(text.error.is_some(), i % 3 == 1, "{text:?}");
    }
    assert_eq!(left.load.pages.n_used, 0);
}

#[test]
fn a_prompt_stops_within_a_step_of_its_caller() {
    for (seed, n_more) in (0..20).map(|seed| (seed, seed as usize % 3)) {
        let limits = Limits { n_ctx: 1000, n_page: 260, max_row: 10, ..limits() };
        let fake = Fake::new(limits, Habits { n_more_under_way: n_more, n_pending: 3, ..Habits::default() });
        let n_row = fake.n_row.clone();
        let n_row = || n_row.load(Ordering::Relaxed);
        let (handle, driver) = serve(fake, tokenizer(), MAX_WAITING).expect("sizes that fit");
        let caller = async move {
            let mut answer = handle.generate(Request::new(prompt(1, 1000), greedy())).expect("a prompt");
            let first = answer.next().await;
            assert!(matches!(first, Some(Event::Started { n_prompt: 1000, n_cached: 0, .. })));
            drop(answer);
            let n_before = n_row();
            while handle.load().n_running > 0 {
                Yield(false).await;
            }
            assert!(
                n_before < 500 && n_row() - n_before <= 10,
                "{} rows without a caller",
                n_row() - n_before
            );
            assert_eq!(handle.load().pages.n_used, 0);
            // The rows that ran remain useful.
            let mut answer = handle.generate(Request::new(prompt(1, 1000), greedy())).expect("a prompt");
            let known = |e| match e {
                Some(Event::Started { n_cached, .. }) => n_cached,
                other => unreachable!("{other:?} before the start"),
            };
            assert_eq!(known(answer.next().await), n_before);
        };
        let driver = async { drop(driver.run().await.expect("a device")) };
        run_all(seed, vec![Box::pin(driver), Box::pin(caller)]);
    }
}

#[test]
fn the_same_prompt_is_known_the_second_time() {
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes");
    let caller = async move {
        let request = Request::new(prompt(1, 30), GenerateOptions { max_tokens: Some(4), ..greedy() });
        let first = read(handle.generate(request.clone()).expect("a prompt")).await;
        assert!(handle.load().n_cached() >= 30 && handle.load().n_used() == 0);
        let mut answer = handle.generate(request).expect("a prompt");
        assert!(matches!(
            answer.next().await,
            Some(Event::Started { n_prompt: 1, n_cached: 29, on_cpu: None })
        ));
        let mut last = None;
        while let Some(event) = answer.next().await {
            last = Some(event);
        }
        let Some(Event::Finished { stats, finish: _ }) = last else { unreachable!("{last:?}") };
        assert_eq!((stats.n_prompt, stats.n_cached, stats.n_token), (1, 29, first.tokens.len()));
        assert!(stats.n_submit > 0 && stats.ttft > std::time::Duration::ZERO);
    };
    run_all(1, vec![Box::pin(async { drop(driver.run().await.expect("a device")) }), Box::pin(caller)]);
}

#[test]
fn higher_priorities_are_served_first() {
    let limits = Limits { n_seq: 1, ..limits() };
    let (handle, driver) =
        serve(Fake::new(limits, Habits::default()), tokenizer(), MAX_WAITING).expect("sizes that fit");
    let asked = |(token, priority)| {
        let request = Request { priority, ..Request::new(vec![token], greedy()) };
        handle.generate(request).expect("a prompt")
    };
    let answers: Vec<Answer> = [(3, 0), (4, 2), (5, 1), (6, 2)].into_iter().map(asked).collect();
    drop(handle);
    let callers = async move {
        for answer in answers {
            read(answer).await;
        }
    };
    let driver = async { assert_eq!(driver.run().await.expect("a device").begun, [4, 6, 5, 3]) };
    run_all(1, vec![Box::pin(callers), Box::pin(driver)]);
}

#[test]
fn the_driver_waits_while_handles_are_there_and_ends_when_they_go() {
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes");
    let mut run = std::pin::pin!(driver.run());
    let waker = std::task::Waker::noop();
    let mut poll = || run.as_mut().poll(&mut std::task::Context::from_waker(waker));
    assert!(poll().is_pending());
    let other = handle.clone();
    drop(handle);
    assert!(poll().is_pending());
    // An answer keeps it running without a handle.
    let mut answer = other.generate(Request::new(prompt(1, 5), greedy())).expect("a prompt");
    drop(other);
    assert!(poll().is_pending());
    let text = pollster::block_on(async {
        let mut text = String::new();
        while let Some(event) = answer.next().await {
            if let Event::Piece(piece) = event {
                text.push_str(&piece.text);
            }
        }
        text
    });
    assert_eq!(text, alone(&Request::new(prompt(1, 5), greedy()), 64).text);
    assert!(poll().is_pending());
    drop(answer);
    assert!(matches!(poll(), Poll::Ready(Ok(_))));
}

#[test]
fn a_driver_that_is_dropped_stops_its_answers() {
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes");
    let answer = handle.generate(Request::new(prompt(1, 5), greedy())).expect("a prompt");
    drop(driver);
    assert_eq!(pollster::block_on(read(answer)).error.as_deref(), Some("the service was stopped"));
    let e = handle.generate(Request::new(prompt(1, 5), greedy())).expect_err("no driver");
    assert!(matches!(e, ServeError::Stopped));
    assert_eq!(handle.load().n_waiting, 0);
}

#[test]
fn threads_share_a_service_on_a_thread_of_its_own() {
    let (handle, driver) = serve(
        Fake::new(limits(), Habits { n_more_under_way: 1, ..Habits::default() }),
        tokenizer(),
        MAX_WAITING,
    )
    .expect("sizes");
    let driver = driver.spawn().expect("a thread");
    let callers: Vec<_> = (0..8u64)
        .map(|i| {
            let handle = handle.clone();
            std::thread::spawn(move || {
                for k in 0..5 {
                    let request = Request::new(prompt(i ^ k, 8), options(i + k));
                    let answer = handle.generate(request.clone()).expect("a prompt");
                    if k == 2 {
                        drop(answer);
                        continue;
                    }
                    assert_eq!(pollster::block_on(read(answer)), alone(&request, 64));
                }
            })
        })
        .collect();
    drop(handle);
    callers.into_iter().for_each(|c| c.join().expect("a caller"));
    let fake = driver.join().expect("the driver's thread").expect("a device");
    assert!(Arc::strong_count(&tokenizer()) == 1 && !fake.rows.is_empty());
}

/// Repetitive letters, for which prompt lookup drafts well.
const LETTERS: &str = "(abcd|efgh){6}";

/// The text and statistics of an answer.
async fn with_stats(mut answer: Answer) -> (String, Stats) {
    let mut text = String::new();
    while let Some(event) = answer.next().await {
        match event {
            Event::Piece(piece) => text.push_str(&piece.text),
            Event::Finished { stats, .. } => return (text, stats),
            Event::Started { .. } | Event::Prompt { .. } => {}
            other => unreachable!("{other:?}"),
        }
    }
    unreachable!("an answer ends")
}

/// Answers to these options at once, in their order, and the executor.
fn at_once(all: Vec<GenerateOptions>) -> (Vec<(String, Stats)>, Fake) {
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes");
    let (found, fake) = (std::cell::RefCell::new(vec![None; all.len()]), std::cell::RefCell::new(None));
    let ask = |options| handle.generate(Request::new(prompt(1, 9), options)).expect("a prompt");
    let answers: Vec<Answer> = all.into_iter().map(ask).collect();
    drop(handle);
    let callers = answers.into_iter().enumerate().map(|(i, answer)| {
        let found = &found;
        let caller = async move { found.borrow_mut()[i] = Some(with_stats(answer).await) };
        Box::pin(caller) as std::pin::Pin<Box<dyn Future<Output = ()>>>
    });
    let mut tasks: Vec<_> = callers.collect();
    let fake_of = &fake;
    tasks.push(Box::pin(async { *fake_of.borrow_mut() = Some(driver.run().await.expect("a device")) }));
    run_all(1, tasks);
    let found = found.take().into_iter().map(|one| one.expect("an end")).collect();
    (found, fake.take().expect("the driver ended"))
}

fn drafted(options: GenerateOptions) -> GenerateOptions {
    let speculate = Some(Speculation { n_max: 4, n_match: 1, ..Speculation::default() });
    GenerateOptions { speculate, ..options }
}

#[test]
fn drafts_save_steps_and_change_no_text() {
    let options = || GenerateOptions {
        grammar: Some(Grammar::Regex(LETTERS.into())),
        max_tokens: Some(30),
        ..on_cpu(1)
    };
    let of = |options| at_once(vec![options]).0.remove(0);
    let (text, plain) = of(options());
    let (found, stats) = of(drafted(options()));
    assert_eq!((&found, text.len()), (&text, 24));
    assert_eq!((plain.n_draft, plain.n_drafted, plain.n_accepted), (0, 0, 0));
    assert!(stats.n_accepted > 4 && stats.n_accepted < stats.n_drafted, "{stats:?}");
    assert!(stats.n_draft > 1 && stats.n_draft * 4 >= stats.n_drafted, "{stats:?}");
    assert!(stats.n_submit + stats.n_accepted <= plain.n_submit, "{stats:?} is no faster than {plain:?}");
    // Drafts that are too short are not verified.
    let long = Speculation { n_min: 5, n_match: 1, ..Speculation::default() };
    let (found, stats) = of(GenerateOptions { speculate: Some(long), ..options() });
    assert_eq!((found, stats.n_draft), (text, 0));
    // Where all would be, the device chooses.
    let grammar = Some(Grammar::Regex(LETTERS.into()));
    let on_device = GenerateOptions { grammar, max_tokens: Some(30), speculate: Some(long), ..seeded(1) };
    let (_, fake) = at_once(vec![on_device]);
    assert!(fake.n_masked > 0, "the device has no masks");
}

#[test]
fn drafts_stop_while_many_requests_run_and_go_on_after_them() {
    let letters = |n| GenerateOptions {
        grammar: Some(Grammar::Regex(LETTERS.replace('6', n))),
        max_tokens: Some(60),
        ..seeded(1)
    };
    let others = || (0..3).map(|i| GenerateOptions { max_tokens: Some(20), ..seeded(i) });
    let run = |first| at_once([first].into_iter().chain(others()).collect());
    let (alone, fake) = at_once(vec![drafted(letters("12"))]);
    assert_eq!(fake.n_masked, 0, "the device chooses nothing");
    let (plain, _) = run(letters("12"));
    let (found, fake) = run(drafted(letters("12")));
    let texts = |all: &[(String, Stats)]| all.iter().map(|(text, _)| text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&found), texts(&plain));
    assert_eq!(found[0].0, alone[0].0);
    // Beside three others the device chooses under masks; once they have ended, there are drafts again.
    let (n, n_alone) = (found[0].1.n_drafted, alone[0].1.n_drafted);
    assert!(n > 0 && n < n_alone && fake.n_masked > 4, "{n} of {n_alone}, {} masks", fake.n_masked);
}
