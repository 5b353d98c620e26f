//! Answers constrained by a grammar, and log probabilities of their tokens.

use std::sync::atomic::Ordering;

use chaski::{DeviceChoice, Engine, Finish, GenerateOptions, Grammar, SamplerParams};
use serde_json::{Value, json};

use crate::common::{Failures, Timed, block_on, build, chain, default_engine, full, greedy};
use crate::golden_text::PROMPT;
use crate::serve::outcome;

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
            assert_eq!(g.on_cpu(), None);
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

/// Answers that a grammar constrains in many ways.
fn grammars() -> [(&'static str, Grammar); 3] {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}}},
        "required": ["name", "tags"],
        "additionalProperties": false,
    });
    [
        ("a schema", Grammar::JsonSchema(schema)),
        ("an expression", Grammar::Regex("[A-Z][a-z]{2,9}( [a-z]{2,9}){3,9}[.!]".into())),
        (
            "a grammar",
            Grammar::from_text(
                "root ::= (name \" and \"){2,6} name \".\"\nname ::= \"Tom\" | \"Anna\" | \"Lily\"\n",
            ),
        ),
    ]
}

/// Chains of samplers that the device has.
fn chains() -> [(&'static str, SamplerParams); 4] {
    let g = SamplerParams::greedy();
    let d = SamplerParams { temp: 1.2, top_k: 30, top_p: 0.9, min_p: 0.02, ..SamplerParams::default() };
    let d = SamplerParams { seed: Some(7), ..d };
    let penalised = |p: &SamplerParams| SamplerParams {
        penalty_repeat: 1.4,
        penalty_freq: 0.2,
        penalty_present: 0.1,
        logit_bias: vec![(300, 1.5), (301, f32::NEG_INFINITY)],
        ..p.clone()
    };
    [
        ("greedy", g.clone()),
        ("greedy with penalties", penalised(&g)),
        ("drawn", d.clone()),
        ("drawn from all with penalties", penalised(&SamplerParams { top_k: 0, ..d })),
    ]
}

/// An answer.
#[derive(Debug, PartialEq)]
struct Found {
    text: String,
    tokens: Vec<u32>,
    finish: Option<Finish>,
}

/// An answer, the reason why the CPU chose, bytes that were read back, and steps.
fn answer(engine: &mut Engine, options: GenerateOptions) -> (Found, Option<&'static str>, u64, u64) {
    let gpu = engine.gpu().cloned();
    let read = || gpu.as_ref().map_or(0, |gpu| gpu.counters().read_bytes.load(Ordering::Relaxed));
    let before = read();
    let mut g = engine.generate(PROMPT, options).expect("a generation");
    let mut text = String::new();
    while let Some(piece) = block_on(g.next()).expect("a piece") {
        text += &piece.text;
    }
    let found = Found { text, tokens: g.tokens().to_vec(), finish: g.finish() };
    (found, g.on_cpu(), read() - before, g.stats().n_submit as u64)
}

/// Device, CPU, and CPU backend choose the same tokens; the device without a readback of logits and with nothing made
/// anew.
#[test]
fn masks_on_the_device_give_the_text_of_the_cpu() {
    let _t = Timed::new("constrained, on the device and on the CPU");
    let mut engine = build(default_engine());
    let mut cpu = build(default_engine().device(DeviceChoice::Cpu));
    let n_vocab = u64::from(engine.loaded().n_vocab());
    let mut failures = Failures::default();
    let mut texts = Vec::new();
    for (i, (what, grammar)) in grammars().into_iter().enumerate() {
        for (j, (chain, sampler)) in chains().into_iter().enumerate() {
            let case = format!("{what}, {chain}");
            if !full() && (i + j) % 2 == 1 {
                continue;
            }
            let options = GenerateOptions { sampler, grammar: Some(grammar.clone()), ..greedy(20) };
            let on_cpu = GenerateOptions { logprobs: Some(0), ..options.clone() };
            let (expected, why, read, _) = answer(&mut engine, on_cpu);
            assert_eq!(why, Some("log probabilities are asked for"), "{case}");
            assert!(read >= 4 * n_vocab * expected.tokens.len() as u64, "{case}: {read} bytes of logits");
            let objects = engine.gpu().expect("a GPU").counters().objects();
            let (found, why, read, n_submit) = answer(&mut engine, options.clone());
            assert_eq!(why, None, "{case}: the device chooses");
            failures.check(found == expected, || format!("{case}: {found:?} and not {expected:?}"));
            // A ring of tokens for each step, and for one that nobody wants any more.
            assert!(
                read <= 4 * 128 * (n_submit + 1) && read < 4 * n_vocab * n_submit,
                "{case}: {read} bytes"
            );
            assert_eq!(engine.gpu().expect("a GPU").counters().objects(), objects, "{case}");
            texts.push(expected.text.clone());
            let (found, why, ..) = answer(&mut cpu, options);
            assert!(why.is_some(), "{case}");
            failures.check(found == expected, || format!("{case}, CPU backend: {found:?}, not {expected:?}"));
        }
    }
    texts.sort();
    texts.dedup();
    failures.check(texts.len() > if full() { 8 } else { 4 }, || {
        format!("grammars and chains that make a difference: {texts:?}")
    });
    failures.conclude();
}

/// One, two and seven at once, with masks, without, and with logits that are read: each has the text that it has alone.
#[test]
fn masked_answers_are_the_same_beside_others() {
    let _t = Timed::new("constrained, beside others");
    let mut single = build(default_engine());
    let (grammars, chains) = (grammars(), chains());
    let requests: Vec<GenerateOptions> = (0..7)
        .map(|i| {
            let grammar = (i % 3 != 1).then(|| grammars[i % grammars.len()].1.clone());
            let logprobs = (i == 5).then_some(1);
            GenerateOptions { sampler: chains[(i + i / 3) % 4].1.clone(), grammar, logprobs, ..greedy(8 + i) }
        })
        .collect();
    let expected: Vec<String> = requests.iter().map(|o| answer(&mut single, o.clone()).0.text).collect();
    let handle = build(default_engine().sequences(7)).spawn().expect("a thread");
    for n in [1, 2, 7] {
        let ask = |options: &GenerateOptions| {
            handle.generate(PROMPT, options.clone()).expect("a request that fits")
        };
        let answers: Vec<_> = requests[..n].iter().map(ask).collect();
        for (i, answer) in answers.into_iter().enumerate() {
            let found = outcome(answer);
            assert_eq!((&found.text, &found.failed), (&expected[i], &None), "request {i} of {n}");
            assert_eq!(found.on_cpu.is_some(), i == 5, "request {i}: {found:?}");
        }
    }
}

/// Nothing is left of what the grammar allows: the same error, and the others go on.
#[test]
fn a_mask_that_leaves_nothing_is_an_error() {
    let _t = Timed::new("constrained, nothing left");
    let mut engine = build(default_engine());
    let tokenizer = engine.tokenizer();
    let is_x = |t: &u32| *tokenizer.token_bytes(*t, chaski::text::RenderSpecial::No) == *b"x";
    let banned: Vec<(u32, f32)> =
        (0..tokenizer.n_vocab() as u32).filter(is_x).map(|t| (t, f32::NEG_INFINITY)).collect();
    assert!((1..8).contains(&banned.len()), "{banned:?}");
    let sampler = SamplerParams { logit_bias: banned, ..SamplerParams::greedy() };
    let stuck = GenerateOptions { sampler, grammar: Some(Grammar::Regex("abx".into())), ..greedy(9) };
    let on_cpu = GenerateOptions { logprobs: Some(0), ..stuck.clone() };
    let [found, expected] = [stuck.clone(), on_cpu].map(|options| {
        chain(&crate::common::text(&mut engine, PROMPT, options).expect_err("no token is left"))
    });
    assert_eq!(found, expected);
    let good = crate::common::text(&mut engine, PROMPT, greedy(9)).expect("a text");
    let handle = build(default_engine().sequences(2)).spawn().expect("a thread");
    let [bad, other] =
        [stuck, greedy(9)].map(|o| handle.generate(PROMPT, o).expect("a request")).map(outcome);
    assert!(bad.failed.is_some() && bad.text == "ab", "{bad:?}");
    assert_eq!((other.text, other.failed), (good, None));
}
