//! Continuous batching: answers are those that each prompt has by itself, whoever comes and goes beside it.

use std::collections::BTreeMap;

use chaski::{
    AddSpecial, Batch, BatchEvent, DeviceChoice, Engine, Finish, GenerateOptions, Grammar, ParseSpecial,
    RequestId, SamplerParams, Source, Stats,
};

use crate::common::{Timed, block_on, default_engine};

const PROMPTS: [&str; 5] =
    ["Once upon a time", "The little dog saw a", "One day, Lily", "Tom was sad because", "In the morning"];

/// What came of each request.
#[derive(Debug, Default)]
struct Outcome {
    text: String,
    finish: Option<(Finish, Stats)>,
    failed: Option<String>,
}

fn run(batch: &mut Batch<'_>, outcomes: &mut BTreeMap<RequestId, Outcome>) {
    for event in block_on(batch.step()).expect("the device runs") {
        match event {
            BatchEvent::Piece { id, piece } => outcomes.entry(id).or_default().text.push_str(&piece.text),
            BatchEvent::Finished { id, finish, stats } => {
                outcomes.entry(id).or_default().finish = Some((finish, stats));
            }
            BatchEvent::Failed { id, error } => {
                outcomes.entry(id).or_default().failed = Some(error.to_string())
            }
        }
    }
}

fn run_all(batch: &mut Batch<'_>) -> BTreeMap<RequestId, Outcome> {
    let mut outcomes = BTreeMap::new();
    while batch.n_open() > 0 {
        run(batch, &mut outcomes);
    }
    outcomes
}

fn tokens(engine: &Engine, text: &str) -> Vec<u32> {
    engine.tokenizer().encode(text, AddSpecial::Yes, ParseSpecial::No).expect("the text is spelled")
}

fn greedy(n: usize) -> GenerateOptions {
    GenerateOptions { sampler: SamplerParams::greedy(), max_tokens: Some(n), ..GenerateOptions::default() }
}

fn alone(engine: &mut Engine, prompt: &[u32], options: &GenerateOptions) -> String {
    let mut g = engine.generate_tokens(prompt, options.clone()).expect("a prompt");
    let mut text = String::new();
    while let Some(piece) = block_on(g.next()).expect("the device runs") {
        text.push_str(&piece.text);
    }
    text
}

/// Five prompts, greedy and drawn, in two sequences and in eight, with other lengths: two or three come late.
#[test]
fn answers_are_those_of_each_prompt_by_itself() {
    let _t = Timed::new("batch, texts");
    let drawn = |seed: u32| GenerateOptions {
        sampler: SamplerParams { seed: Some(seed), ..SamplerParams::default() },
        // Then the processor draws for a single prompt, too.
        logprobs: Some(0),
        max_tokens: Some(20),
        ..GenerateOptions::default()
    };
    let options = [greedy(24), drawn(7), greedy(9), drawn(8), greedy(30)];
    let mut single = block_on(default_engine().build()).expect("the default model loads");
    let prompts = PROMPTS.map(|p| tokens(&single, p));
    let expected: Vec<String> = prompts.iter().zip(&options).map(|(p, o)| alone(&mut single, p, o)).collect();
    for n_seq in [2, 8] {
        let mut engine =
            block_on(default_engine().sequences(n_seq).build()).expect("the default model loads");
        let mut batch = engine.batch();
        let mut outcomes = BTreeMap::new();
        let mut ids = Vec::new();
        for (prompt, options) in prompts.iter().zip(&options) {
            ids.push(batch.submit(prompt, options.clone()).expect("a prompt"));
            run(&mut batch, &mut outcomes);
        }
        while batch.n_open() > 0 {
            run(&mut batch, &mut outcomes);
        }
        for (id, expected) in ids.iter().zip(&expected) {
            let found = &outcomes[id];
            assert_eq!(&found.text, expected, "{n_seq} sequences");
            assert!(matches!(found.finish, Some((Finish::Length | Finish::Stop, _))), "{found:?}");
        }
    }
}

/// Prompts that begin alike share what they begin with, while the first is still answered.
#[test]
fn what_prompts_begin_with_is_run_once() {
    let _t = Timed::new("batch, shared beginnings");
    let story =
        "Once upon a time there was a little girl who had a red ball. She liked to play in the park. "
            .repeat(2);
    let mut engine = block_on(default_engine().sequences(3).build()).expect("the default model loads");
    let [a, b] = ["One day she", "Her friend Tom"].map(|end| tokens(&engine, &(story.clone() + end)));
    let alike = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let mut single = block_on(default_engine().build()).expect("the default model loads");
    // All of them are still at it when the last comes.
    let mut options = greedy(30);
    options.sampler.ignore_eos = true;
    let expected = [&a, &b].map(|p| alone(&mut single, p, &options));
    let mut batch = engine.batch();
    let mut outcomes = BTreeMap::new();
    let first = batch.submit(&a, options.clone()).expect("a prompt");
    for _ in 0..5 {
        run(&mut batch, &mut outcomes);
    }
    let second = batch.submit(&b, options.clone()).expect("a prompt");
    // Word for word the first again, which only its last token is run for.
    let third = batch.submit(&a, options.clone()).expect("a prompt");
    while batch.n_open() > 0 {
        run(&mut batch, &mut outcomes);
    }
    let of = |id| (outcomes[&id].text.clone(), outcomes[&id].finish.as_ref().map(|f| f.1.n_cached));
    assert_eq!(of(first), (expected[0].clone(), Some(0)));
    assert_eq!(of(second), (expected[1].clone(), Some(alike)));
    assert_eq!(of(third), (expected[0].clone(), Some(a.len() - 1)));
}

/// Requests that end early, in every way there is.
#[test]
fn requests_come_and_go() {
    let _t = Timed::new("batch, requests");
    let mut engine =
        block_on(default_engine().sequences(2).context(64).build()).expect("the default model loads");
    let prompt = tokens(&engine, PROMPTS[0]);
    let mut single = block_on(default_engine().context(64).build()).expect("the default model loads");
    let long = alone(&mut single, &prompt, &greedy(1000));
    let digits = Grammar::Regex("[0-9]{6}".into());
    let mut batch = engine.batch();
    assert!(batch.submit(&[], greedy(4)).is_err());
    assert!(batch.submit(&[u32::MAX], greedy(4)).is_err());
    assert!(batch.submit(&vec![prompt[0]; 65], greedy(4)).is_err());
    assert_eq!(batch.n_open(), 0);
    let nothing = batch.submit(&prompt, greedy(0)).expect("a prompt");
    let given_up = batch.submit(&prompt, greedy(50)).expect("a prompt");
    let until_full = batch.submit(&prompt, greedy(1000)).expect("a prompt");
    let waiting = batch.submit(&prompt, greedy(50)).expect("a prompt");
    let options = GenerateOptions { grammar: Some(digits), logprobs: Some(2), ..greedy(50) };
    let constrained = batch.submit(&prompt, options).expect("a grammar");
    let mut outcomes = BTreeMap::new();
    for _ in 0..6 {
        run(&mut batch, &mut outcomes);
    }
    assert!(batch.cancel(given_up) && batch.cancel(waiting) && !batch.cancel(waiting));
    while batch.n_open() > 0 {
        run(&mut batch, &mut outcomes);
    }
    let finish = |id| outcomes.get(&id).and_then(|o| o.finish.as_ref()).map(|f| f.0);
    assert_eq!(finish(nothing), Some(Finish::Length));
    assert_eq!((finish(given_up), finish(waiting)), (None, None));
    assert!(long.starts_with(&outcomes[&given_up].text) && !outcomes[&given_up].text.is_empty());
    assert_eq!(finish(until_full), Some(Finish::Context));
    assert_eq!(outcomes[&until_full].text, long);
    let found = &outcomes[&constrained].text;
    assert!(found.len() == 6 && found.chars().all(|c| c.is_ascii_digit()), "{found}");
    assert_eq!(finish(constrained), Some(Finish::Stop));
    // The cache is as it should be: a single answer goes on from there.
    assert_eq!(alone(&mut engine, &prompt, &greedy(1000)), long);
}

/// Nothing can be chosen for one of two: it fails, and the other goes on.
#[test]
fn one_that_fails_leaves_the_others_alone() {
    let _t = Timed::new("batch, failures");
    let mut engine = block_on(default_engine().sequences(2).build()).expect("the default model loads");
    let prompt = tokens(&engine, PROMPTS[0]);
    let expected = alone(&mut engine, &prompt, &greedy(12));
    let mut hopeless = greedy(12);
    hopeless.sampler.logit_bias = (0..engine.runner().n_vocab()).map(|t| (t, f32::NEG_INFINITY)).collect();
    let mut batch = engine.batch();
    let good = batch.submit(&prompt, greedy(12)).expect("a prompt");
    let bad = batch.submit(&prompt, hopeless).expect("a prompt");
    let later = batch.submit(&prompt, greedy(12)).expect("a prompt");
    let outcomes = run_all(&mut batch);
    assert!(outcomes[&bad].failed.is_some() && outcomes[&bad].finish.is_none(), "{:?}", outcomes[&bad]);
    for id in [good, later] {
        assert_eq!(outcomes[&id].text, expected);
        assert!(outcomes[&id].failed.is_none());
    }
}

/// The processor runs one after the other, with the same results.
#[test]
fn the_processor_batches_too() {
    let _t = Timed::new("batch, processor");
    let build = |n| Engine::builder(Source::Default).device(DeviceChoice::Cpu).sequences(n).context(64);
    let mut single = block_on(build(1).build()).expect("the default model loads");
    let prompts: Vec<Vec<u32>> = PROMPTS[..3].iter().map(|p| tokens(&single, p)).collect();
    let expected: Vec<String> = prompts.iter().map(|p| alone(&mut single, p, &greedy(6))).collect();
    let mut engine = block_on(build(2).build()).expect("the default model loads");
    let mut batch = engine.batch();
    for p in &prompts {
        batch.submit(p, greedy(6)).expect("a prompt");
    }
    let found: Vec<String> = run_all(&mut batch).into_values().map(|o| o.text).collect();
    assert_eq!(found, expected);
}
