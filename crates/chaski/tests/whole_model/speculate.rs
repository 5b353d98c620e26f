//! Speculative decoding: the same texts in fewer steps.

use chaski::options::Speculation;
use chaski::serve::Event;
use chaski::text::{AddSpecial, ParseSpecial};
use chaski::{
    DeviceChoice, Engine, EngineBuilder, GenerateOptions, Grammar, Handle, KvType, SamplerParams, Stats,
};

use crate::common::{Timed, block_on, default_engine, in_turns, say};
use crate::serve::outcome;

const LIST: &str = "Lily has a red ball. Tom has a red ball. Lily has";
const FREE: &str = "Once upon a time";

fn options(sampler: SamplerParams, speculate: Option<Speculation>) -> GenerateOptions {
    // The CPU samples in either case.
    GenerateOptions {
        sampler,
        speculate,
        max_tokens: Some(24),
        logprobs: Some(1),
        ..GenerateOptions::default()
    }
}

/// Text, log probabilities of its tokens, and statistics.
fn answer(engine: &mut Engine, prompt: &str, o: GenerateOptions) -> (String, Vec<f32>, Stats) {
    let tokens =
        engine.tokenizer().encode(prompt, AddSpecial::Yes, ParseSpecial::No).expect("the text is spelled");
    let mut g = engine.generate_tokens(&tokens, o).expect("a prompt");
    let (mut text, mut logprobs) = (String::new(), Vec::new());
    while let Some(piece) = block_on(g.next()).expect("the device runs") {
        text.push_str(&piece.text);
        logprobs.extend(piece.logprobs.map(|l| l.logprob));
    }
    (text, logprobs, g.stats().clone())
}

fn build(builder: EngineBuilder) -> Engine {
    block_on(builder.build()).expect("the default model loads")
}

/// Greedy and sampled, with prompt lookup and a draft model: text and probabilities are those without drafts.
#[test]
fn drafts_change_no_text() {
    let _t = Timed::new("speculation, texts");
    let mut engine = build(default_engine());
    let drawn = SamplerParams { seed: Some(3), ..SamplerParams::default() };
    for (nth, (prompt, sampler)) in [(LIST, SamplerParams::greedy()), (FREE, drawn)].into_iter().enumerate() {
        let greedy = sampler.temp <= 0.0;
        let (text, logprobs, stats) = answer(&mut engine, prompt, options(sampler.clone(), None));
        assert_eq!((stats.n_drafted, logprobs.len()), (0, stats.n_token));
        for n_max in in_turns(nth, &[6, 1]) {
            let ahead = Speculation { n_max, n_match: 1, ..Speculation::default() };
            let mut check = |draft: Option<Engine>, what: &str| {
                engine.clear();
                engine.set_draft(draft).expect("the same vocabulary");
                let o = options(sampler.clone(), Some(ahead));
                let (found, found_logprobs, stats) = answer(&mut engine, prompt, o);
                assert_eq!(found, text, "{what} of {n_max}");
                let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-3;
                assert!(found_logprobs.iter().zip(&logprobs).all(close), "{what} of {n_max}");
                say(format!("{what} of {n_max}: {} of {} drafts right", stats.n_accepted, stats.n_drafted));
                stats
            };
            let looked_up = check(None, "looked up");
            // The same model is the best possible draft.
            let drafted = check(Some(build(default_engine())), "drafted");
            // Stories seldom repeat themselves; a grammar below makes text repeat.
            assert!(looked_up.n_drafted > 0, "{looked_up:?}");
            // The same model drafts its own choices, up to rounding: all of them if greedy.
            if greedy {
                assert_eq!(drafted.n_accepted, drafted.n_drafted, "{drafted:?}");
                assert!(
                    drafted.n_accepted * (n_max + 1) >= drafted.n_token.saturating_sub(8) * n_max,
                    "{drafted:?}"
                );
            }
        }
    }
}

/// Several requests draft at once, each in a sequence of the draft model, and stop while more run; their texts are
/// those without drafts.
#[test]
fn requests_draft_side_by_side_while_few_run() {
    let _t = Timed::new("speculation, side by side");
    let on_cpu = || default_engine().device(DeviceChoice::Cpu).kv(KvType::F32);
    let ask = |handle: &Handle, i: usize, speculate| {
        let sampler = match i % 2 {
            0 => SamplerParams::greedy(),
            _ => SamplerParams { seed: Some(i as u32), ..SamplerParams::default() },
        };
        let options =
            GenerateOptions { sampler, speculate, max_tokens: Some(16), ..GenerateOptions::default() };
        let prompt = [FREE, LIST, "The little dog"][i % 3];
        handle.generate(prompt, options).expect("a prompt")
    };
    let plain = build(on_cpu()).spawn().expect("a thread");
    let expected: Vec<String> = (0..8).map(|i| outcome(ask(&plain, i, None)).text).collect();
    for p_min in [0.0, 0.3] {
        let mut engine = build(on_cpu().sequences(8));
        engine.set_draft(Some(build(on_cpu().sequences(4)))).expect("the same vocabulary");
        assert!(engine.memory().items.iter().any(|item| item.what == "draft model"));
        let handle = engine.spawn().expect("a thread");
        let speculate = Some(Speculation { p_min, ..Speculation::default() });
        let run = |n: usize| {
            let answers: Vec<_> = (0..n).map(|i| ask(&handle, i, speculate)).collect();
            let found: Vec<_> = answers.into_iter().map(outcome).collect();
            let texts: Vec<_> = found.iter().map(|one| one.text.clone()).collect();
            assert_eq!(texts, expected[..n], "{n} at once, {p_min}");
            let sum = |of: fn(&Stats) -> usize| {
                found.iter().filter_map(|one| one.finish.as_ref()).map(|(_, stats)| of(stats)).sum::<usize>()
            };
            say(format!("{n} at once, {p_min}: {} of {}", sum(|s| s.n_accepted), sum(|s| s.n_drafted)));
            [sum(|s| s.n_draft), sum(|s| s.n_drafted), sum(|s| s.n_accepted), sum(|s| s.n_submit)]
        };
        let [n_draft, n_drafted, n_accepted, n_step] = run(2);
        assert!(n_drafted > n_draft && n_accepted * 3 > n_drafted, "{n_accepted} of {n_drafted}");
        assert!(n_step + n_accepted <= 2 * 16 + 2, "{n_step} steps, {n_accepted} accepted");
        // One token for each of four; of eight, the last ones draft again.
        let [n_draft, n_drafted, ..] = run(4);
        assert!(n_draft > 0 && n_drafted < 4 * 15, "{n_drafted}");
        let [_, of_eight, ..] = run(8);
        assert!(of_eight < 2 * n_drafted, "{of_eight} of eight, {n_drafted} of four");
    }
}

/// On a GPU, which samples where there are no drafts: an answer changes its sampler twice, and its text is the same.
#[test]
fn an_answer_goes_from_drafts_to_the_device_and_back() {
    let _t = Timed::new("speculation, changing samplers");
    let options = |i: u32, n, speculate| {
        let sampler = SamplerParams { seed: Some(i), penalty_repeat: 1.1, ..SamplerParams::default() };
        GenerateOptions { sampler, speculate, max_tokens: Some(n), ..GenerateOptions::default() }
    };
    let mut engine = build(default_engine().sequences(6));
    let gpu = engine.gpu().expect("it is on a GPU").clone();
    engine.set_draft(Some(build(default_engine().gpu(gpu)))).expect("the same vocabulary");
    let handle = engine.spawn().expect("a thread");
    let alone = outcome(handle.generate(FREE, options(7, 40, None)).expect("a prompt"));
    assert_eq!((alone.on_cpu, alone.tokens.len()), (None, 40));
    let mut answer = handle.generate(FREE, options(7, 40, Some(Speculation::default()))).expect("a prompt");
    let mut tokens = Vec::new();
    while tokens.len() < 8 {
        match block_on(answer.next()) {
            Some(Event::Started { on_cpu, .. }) => assert_eq!(on_cpu, Some("tokens are drafted")),
            Some(Event::Piece(piece)) => tokens.extend(piece.token),
            other => panic!("{other:?}"),
        }
    }
    let before = handle.load().n_step;
    let others: Vec<_> =
        (0..5).map(|i| handle.generate(LIST, options(i, 8, None)).expect("a prompt")).collect();
    others.into_iter().for_each(|other| drop(outcome(other)));
    assert!(handle.load().n_step > before);
    let rest = outcome(answer);
    tokens.extend(rest.tokens);
    assert_eq!(tokens, alone.tokens);
    let (_, stats) = rest.finish.expect("an end");
    say(format!("{} of {} in {} steps", stats.n_accepted, stats.n_drafted, stats.n_submit));
    assert!(stats.n_drafted > 0, "{stats:?}");
}

/// Grammars are obeyed, and end at the same place as without drafts; on the CPU, too.
#[test]
fn drafts_keep_to_a_grammar() {
    let _t = Timed::new("speculation, grammar");
    let grammar = Grammar::Regex("( (red|blue) ball){5}[.]".into());
    for device in [DeviceChoice::default(), DeviceChoice::Cpu] {
        let mut engine = build(default_engine().device(device));
        let mut told = Vec::new();
        for speculate in [None, Some(Speculation { n_max: 5, n_match: 1, ..Speculation::default() })] {
            engine.clear();
            let o = GenerateOptions {
                grammar: Some(grammar.clone()),
                max_tokens: Some(40),
                ..options(SamplerParams::greedy(), speculate)
            };
            let (text, _, stats) = answer(&mut engine, "She saw a", o);
            assert!(text.ends_with(" ball.") && text.matches(" ball").count() == 5, "{text}");
            assert_eq!(stats.n_accepted > 0, speculate.is_some(), "{stats:?}");
            told.push(text);
        }
        assert_eq!(told[0], told[1]);
    }
}
