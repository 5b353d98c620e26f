//! Answers constrained by a grammar, and log probabilities of their tokens.

use chaski::{Finish, GenerateOptions, Grammar, SamplerParams};
use serde_json::{Value, json};

use crate::common::{Timed, block_on, build, default_engine, greedy};
use crate::golden_text::PROMPT;

fn warm(n: usize, seed: u32, grammar: Grammar) -> GenerateOptions {
    let sampler = SamplerParams { seed: Some(seed), temp: 1.5, ..SamplerParams::default() };
    GenerateOptions { sampler, grammar: Some(grammar), ..greedy(n) }
}

#[test]
fn the_storyteller_writes_what_it_must() {
    let _t = Timed::new("constrained, whole texts");
    let mut engine = build(default_engine());
    let schema = json!({
        "type": "object",
        "properties": {"animal": {"enum": ["cat", "otter"]}, "legs": {"type": "integer", "minimum": 2, "maximum": 8}},
        "required": ["animal", "legs"],
        "additionalProperties": false,
        "x-guidance": {"whitespace_flexible": false},
    });
    let gbnf = "root ::= name (\" and \" name)* \".\"\nname ::= \"Tom\" | \"Anna\"\n";
    for seed in 0..3 {
        let mut write = |grammar: Grammar| {
            let mut g = engine.generate(PROMPT, warm(40, seed, grammar)).expect("a generation");
            let mut text = String::new();
            while let Some(piece) = block_on(g.next()).expect("a piece") {
                text += &piece.text;
            }
            assert_eq!(g.on_cpu(), Some("the output is constrained"));
            (text, g.finish().expect("a reason"))
        };
        let (text, finish) = write(Grammar::JsonSchema(schema.clone()));
        assert_eq!(finish, Finish::Stop, "{text}");
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(["cat", "otter"].iter().any(|animal| value["animal"] == *animal), "{text}");
        assert!((2..=8).contains(&value["legs"].as_u64().expect("a number")), "{text}");

        let (text, finish) = write(Grammar::Regex("[a-c]{3} (yes|no)".into()));
        assert_eq!(finish, Finish::Stop, "{text}");
        let (letters, word) = text.split_once(' ').expect("a space");
        assert!(letters.len() == 3 && letters.bytes().all(|b| b"abc".contains(&b)), "{text}");
        assert!(["yes", "no"].contains(&word), "{text}");

        let (text, finish) = write(Grammar::from_text(gbnf));
        let names = text.trim_end_matches('.');
        let is_list = names.split(" and ").all(|name| ["Tom", "Anna"].contains(&name));
        assert!(is_list || finish == Finish::Length, "{text}");
        assert_eq!(text.ends_with('.'), finish == Finish::Stop, "{text}");
    }
}

#[test]
fn a_constraint_that_allows_all_changes_nothing() {
    let _t = Timed::new("constrained, any text");
    let mut engine = build(default_engine());
    let free = crate::common::text(&mut engine, PROMPT, greedy(12)).expect("a text");
    let options = GenerateOptions { grammar: Some(Grammar::Regex("(?s:.*)".into())), ..greedy(12) };
    let constrained = crate::common::text(&mut engine, PROMPT, options).expect("a text");
    assert_eq!(constrained, free);
}

#[test]
fn greedy_tokens_are_the_most_probable_ones() {
    let _t = Timed::new("log probabilities");
    let mut engine = build(default_engine());
    let free = crate::common::text(&mut engine, PROMPT, greedy(6)).expect("a text");
    let options = GenerateOptions { logprobs: Some(3), ..greedy(6) };
    let mut g = engine.generate(PROMPT, options).expect("a generation");
    let (mut text, mut n_token) = (String::new(), 0);
    while let Some(piece) = block_on(g.next()).expect("a piece") {
        text += &piece.text;
        let Some(token) = piece.token else { continue };
        n_token += 1;
        let found = piece.logprobs.expect("log probabilities");
        assert_eq!(found.top.len(), 3);
        assert_eq!(found.top[0], (token, found.logprob));
        assert!(found.top.is_sorted_by(|a, b| a.1 >= b.1), "{found:?}");
        let sum: f32 = found.top.iter().map(|(_, logprob)| logprob.exp()).sum();
        assert!((0.0..=1.0 + 1e-5).contains(&sum), "{found:?}");
    }
    assert_eq!(g.on_cpu(), Some("log probabilities are asked for"));
    assert_eq!((text, n_token), (free, 6));
}
