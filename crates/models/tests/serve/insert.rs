//! Tokens that a caller puts into an answer, and a cache that is emptied.

use std::cell::RefCell;

use chaski_models::serve::{Answer, Event, Request, serve};
use chaski_models::{Finish, GenerateOptions};
use chaski_text::{Grammar, Sampler};

use crate::case::{MAX_WAITING, greedy, on_cpu, read, seeded};
use crate::fake::{self, ALL, Fake, Habits, limits, tokenizer};
use crate::tasks::run_all;
use crate::{drafted, prompt};

/// Tokens to insert.
const INSERTED: [u32; 2] = [5, 6];

/// The tokens of an answer into which they are put after the first `n`, and its end.
async fn with_inserted(mut answer: Answer, n: usize) -> (Vec<u32>, Finish) {
    let mut tokens = Vec::new();
    while let Some(event) = answer.next().await {
        match event {
            Event::Piece(piece) => {
                tokens.extend(piece.token);
                if tokens.len() == n && piece.token.is_some() {
                    answer.insert(INSERTED.to_vec());
                }
            }
            Event::Finished { finish, stats } => {
                // A token that ends an answer is not part of it.
                assert!([0, usize::from(finish == Finish::Stop)].contains(&(stats.n_token - tokens.len())));
                return (tokens, finish);
            }
            Event::Failed { error } => panic!("{error}"),
            _ => {}
        }
    }
    unreachable!("an answer ends")
}

/// The answers to all of these at once.
fn answers(all: &[Request], n: usize, habits: Habits) -> Vec<(Vec<u32>, Finish)> {
    let (handle, driver) = serve(Fake::new(limits(), habits), tokenizer(), MAX_WAITING).expect("sizes");
    let found = RefCell::new(vec![None; all.len()]);
    let ask = |request: &Request| handle.generate(request.clone()).expect("a prompt");
    let asked: Vec<Answer> = all.iter().map(ask).collect();
    drop(handle);
    let callers = asked.into_iter().enumerate().map(|(i, answer)| {
        let found = &found;
        Box::pin(async move { found.borrow_mut()[i] = Some(with_inserted(answer, n).await) })
            as std::pin::Pin<Box<dyn Future<Output = ()>>>
    });
    let mut tasks: Vec<_> = callers.collect();
    tasks.push(Box::pin(async { drop(driver.run().await.expect("a device")) }));
    run_all(3, tasks);
    found.take().into_iter().map(|one| one.expect("an end")).collect()
}

/// True if an answer is what the fake chooses by itself, with the inserted tokens from this place on.
fn fits(request: &Request, tokens: &[u32], at: usize) -> bool {
    let sampler = Sampler::new(request.options.sampler.clone(), &tokenizer());
    let mut seen = request.prompt.clone();
    tokens.iter().enumerate().all(|(i, token)| {
        let inserted = i.checked_sub(at).and_then(|nth| INSERTED.get(nth));
        let expected =
            inserted.copied().unwrap_or_else(|| fake::choose(&sampler, &seen, &[1.0, 1.0], i, ALL));
        seen.push(*token);
        *token == expected
    })
}

#[test]
fn an_answer_goes_on_behind_tokens_that_are_put_into_it() {
    let mut n_inserted = 0;
    for seed in 0..8 {
        let kinds = [greedy(), seeded(seed), on_cpu(seed), drafted(greedy())];
        let all: Vec<Request> = kinds
            .into_iter()
            .enumerate()
            .map(|(i, options)| {
                let options = GenerateOptions { max_tokens: Some(24), ..options };
                Request::new(prompt(u64::from(seed) + 10 * i as u64, 5 + i), options)
            })
            .collect();
        let habits = Habits { n_more_under_way: 2, n_pending: 2, ..Habits::default() };
        for (request, (tokens, finish)) in all.iter().zip(answers(&all, 4, habits)) {
            // Tokens that were under way at that time may come before.
            let at = (4..tokens.len())
                .find(|at| tokens[*at..].starts_with(&INSERTED) && fits(request, &tokens, *at));
            assert!(at.is_some() || finish == Finish::Stop, "{tokens:?}");
            assert!(at.is_some() || fits(request, &tokens, usize::MAX), "{tokens:?}");
            assert!(finish != Finish::Length || tokens.len() == 24);
            n_inserted += usize::from(at.is_some());
        }
    }
    assert!(n_inserted > 20, "{n_inserted}");
}

#[test]
fn answers_end_at_their_length_and_context_behind_such_tokens() {
    let request = |n_prompt, max_tokens| {
        let sampler = chaski_text::SamplerParams { ignore_eos: true, ..chaski_text::SamplerParams::greedy() };
        let options = GenerateOptions { sampler, max_tokens, interval: 1, ..GenerateOptions::default() };
        Request::new(prompt(7, n_prompt), options)
    };
    let (n_ctx, mut n_inserted) = (limits().n_ctx, 0);
    for more in 0..8 {
        let all = [request(5, Some(5 + more)), request(n_ctx - 4 - more, None)];
        let found = answers(&all, 4, Habits { n_pending: 3, ..Habits::default() });
        let ends: Vec<(usize, Finish)> =
            found.iter().map(|(tokens, finish)| (tokens.len(), *finish)).collect();
        assert_eq!(ends, [(5 + more, Finish::Length), (5 + more, Finish::Context)], "{found:?}");
        for (request, (tokens, _)) in all.iter().zip(&found) {
            let place = (4..=tokens.len()).find(|at| fits(request, tokens, *at));
            assert!(place.is_some(), "{tokens:?}");
            n_inserted += usize::from(place.is_some_and(|at| at < tokens.len()));
        }
    }
    assert!(n_inserted > 8, "{n_inserted}");
}

#[test]
fn a_grammar_goes_on_behind_such_tokens_or_forbids_them() {
    let of = |regex: &str| {
        let options = GenerateOptions { grammar: Some(Grammar::Regex(regex.into())), ..greedy() };
        let habits = Habits { n_pending: 3, ..Habits::default() };
        answers(&[Request::new(prompt(1, 5), options)], 4, habits).remove(0).0
    };
    // c, d: the tokens 5 and 6.
    let tokens = of("[ab]{4,9}(cd[ab]{3})?");
    let at = tokens.windows(2).position(|pair| pair == INSERTED).expect("they are there");
    assert!((4..=9).contains(&at) && tokens.len() == at + 5, "{tokens:?}");
    let tokens = of("[ab]{9}");
    assert!(tokens.len() == 9 && tokens.iter().all(|token| [3, 4].contains(token)), "{tokens:?}");
}

#[test]
fn what_came_meanwhile_does_not_come_twice() {
    let options = GenerateOptions { grammar: Some(Grammar::Regex("[ab]{4}cd[ab]{5}".into())), ..greedy() };
    for n in 4..7 {
        let asked = [Request::new(prompt(1, 5), options.clone())];
        let tokens = answers(&asked, n, Habits { n_pending: 3, ..Habits::default() }).remove(0).0;
        assert!(tokens.len() == 11 && tokens[4..6] == INSERTED, "{tokens:?}");
    }
}

#[test]
fn a_flush_drops_what_no_request_uses() {
    let (handle, driver) =
        serve(Fake::new(limits(), Habits::default()), tokenizer(), MAX_WAITING).expect("sizes");
    let caller = async move {
        let request = Request::new(prompt(1, 30), GenerateOptions { max_tokens: Some(4), ..greedy() });
        let first = read(handle.generate(request.clone()).expect("a prompt")).await;
        let n_page = handle.load().pages.n_cached;
        assert!(n_page > 1);
        assert_eq!(handle.flush_cache().await.expect("a driver"), n_page);
        assert_eq!((handle.load().n_cached(), handle.flush_cache().await.expect("a driver")), (0, 0));
        let mut answer = handle.generate(request).expect("a prompt");
        assert!(matches!(answer.next().await, Some(Event::Started { n_prompt: 30, n_cached: 0, .. })));
        // The pages of a request that runs stay.
        handle.flush_cache().await.expect("a driver");
        assert_eq!(read(answer).await.tokens, first.tokens);
    };
    run_all(1, vec![Box::pin(async { drop(driver.run().await.expect("a device")) }), Box::pin(caller)]);
}
