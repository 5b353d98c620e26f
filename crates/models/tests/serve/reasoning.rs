//! Budgets of reasoning.

use chaski_models::serve::Request;
use chaski_models::{Finish, GenerateOptions, ReasoningBudget};
use chaski_schedule::Limits;
use chaski_text::{AnswerParser, AnswerSyntax, Grammar, Sampler};

use crate::case::{Case, GRAMMAR, alone, check, greedy, masked, on_cpu, run, seeded};
use crate::fake::{self, ALL, CLOSE, EOS, Habits, limits, tokenizer};
use crate::{drafted, prompt};

/// Tokens of the answers.
const MAX: usize = 30;

/// An answer that begins in the midst of reasoning, with so many tokens for it.
pub(crate) fn budgeted(n_max: usize, options: GenerateOptions) -> GenerateOptions {
    let parser = AnswerParser::new(AnswerSyntax::by_name("plain").expect("a syntax"), "<think>", &[]);
    let reasoning = Some(ReasoningBudget::new(n_max).within(parser));
    GenerateOptions { reasoning, shown: vec![CLOSE], max_tokens: Some(MAX), ..options }
}

/// The expected answer, by a loop over the fake's choices.
fn by_hand(prompt: &[u32], n_max: usize, options: &GenerateOptions) -> Vec<u32> {
    let sampler = Sampler::new(options.sampler.clone(), &tokenizer());
    let (mut seen, mut answer) = (prompt.to_vec(), Vec::new());
    while answer.len() < MAX {
        let chosen = fake::choose(&sampler, &seen, &[1.0, 1.0], answer.len(), ALL);
        let token = if answer.len() == n_max { CLOSE } else { chosen };
        if token == EOS {
            break;
        }
        seen.push(token);
        answer.push(token);
    }
    answer
}

#[test]
fn the_marker_follows_the_last_token_of_the_budget_wherever_tokens_are_chosen() {
    let mut n_closed = 0;
    for i in 0..10 {
        for n_max in [1, 2, 7, 20, 40] {
            let prompt = prompt(u64::from(i), 6);
            for options in [greedy(), seeded(i), on_cpu(i)] {
                let expected = by_hand(&prompt, n_max, &options);
                n_closed += usize::from(expected.contains(&CLOSE));
                let with_logits = GenerateOptions { logprobs: Some(1), ..options.clone() };
                let often = GenerateOptions { interval: 5, ..options.clone() };
                for options in [options.clone(), with_logits, often, drafted(options)] {
                    let request = Request::new(prompt.clone(), budgeted(n_max, options));
                    assert_eq!(alone(&request, 64).tokens, expected, "{n_max}, {i}");
                    let case = Case { request: request.clone(), delay: 0, leaves: None };
                    let habits = Habits { n_more_under_way: 2, n_pending: 2, ..Habits::default() };
                    let left = run(u64::from(i), limits(), habits, &[case]);
                    assert_eq!(left.texts[0].tokens, expected, "tokens ahead, {n_max}, {i}");
                }
            }
        }
    }
    assert!(n_closed > 60, "{n_closed}");
}

#[test]
fn company_and_preemption_change_nothing() {
    let kinds = |i: u32| [greedy(), seeded(i), on_cpu(i), drafted(seeded(i)), masked(i)];
    for seed in 0..6 {
        let case = |(i, options): (usize, GenerateOptions)| {
            let request = Request::new(prompt(u64::from(seed) + i as u64, 5 + i % 4), options);
            Case { request, delay: i, leaves: None }
        };
        let options = (0..3).flat_map(|i| kinds(seed + i)).enumerate();
        let cases: Vec<Case> = options
            .map(|(i, options)| {
                let after = options.grammar.is_some().then(|| "</think>".to_owned());
                (i, budgeted(i, GenerateOptions { grammar_after: after, ..options }))
            })
            .map(case)
            .collect();
        let few = Limits { n_seq: 6, n_page: 20, ..limits() };
        let left =
            run(seed.into(), few, Habits { n_more_under_way: 1, n_pending: 2, ..Habits::default() }, &cases);
        check(&cases, &left, 64);
        assert!(left.load.n_preempted > 0);
    }
}

#[test]
fn a_grammar_begins_behind_the_marker() {
    for i in 0..8 {
        for n_max in [1, 3, 9] {
            let free = budgeted(100, if i % 2 == 0 { greedy() } else { seeded(i) });
            let request = Request::new(prompt(u64::from(i), 6), free.clone());
            let without = alone(&request, 64).tokens;
            let constrained = GenerateOptions {
                grammar: Some(Grammar::Regex(GRAMMAR.into())),
                grammar_after: Some("</think>".into()),
                ..budgeted(n_max, free)
            };
            for options in [constrained.clone(), drafted(constrained)] {
                let found = alone(&Request { options, ..request.clone() }, 64);
                let n = n_max.min(without.len());
                assert_eq!(found.tokens[..n], without[..n]);
                if without.len() >= n_max {
                    assert_eq!(found.tokens[n], CLOSE);
                    // It may be cut at its length.
                    let text = found.text.split_once("</think>").expect("the marker").1;
                    let is_part = text.split_inclusive(['b', 'i']).all(|part| {
                        let inner = part.strip_prefix('c').map(|rest| rest.strip_suffix('i').unwrap_or(rest));
                        ["ab", "a"].contains(&part)
                            || inner.is_some_and(|rest| rest.chars().all(|c| ('d'..='h').contains(&c)))
                    });
                    assert!(text.len() >= 4 && is_part, "{text}");
                }
            }
        }
    }
}

#[test]
fn a_context_without_room_for_the_marker_ends_without_it() {
    let sampler = chaski_text::SamplerParams { ignore_eos: true, ..chaski_text::SamplerParams::greedy() };
    let found = |n_max: usize| {
        let options = budgeted(n_max, GenerateOptions { sampler: sampler.clone(), ..greedy() });
        let found = alone(&Request::new(prompt(3, 60), options), 64);
        (found.tokens.len(), found.tokens.iter().position(|token| *token == CLOSE), found.finish)
    };
    assert_eq!(found(3), (5, Some(3), Some(Finish::Context)));
    assert_eq!(found(4), (5, None, Some(Finish::Context)));
}
