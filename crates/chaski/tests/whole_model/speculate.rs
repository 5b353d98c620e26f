//! Speculative decoding: the same texts in fewer steps.

use chaski::text::{AddSpecial, ParseSpecial};
use chaski::{
    DeviceChoice, Engine, EngineBuilder, GenerateOptions, Grammar, SamplerParams, Speculation, Stats,
};

use crate::common::{Timed, block_on, default_engine, say};

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
fn guesses_change_no_text() {
    let _t = Timed::new("speculation, texts");
    let mut engine = build(default_engine());
    let drawn = SamplerParams { seed: Some(3), ..SamplerParams::default() };
    for (prompt, sampler) in [(LIST, SamplerParams::greedy()), (FREE, drawn)] {
        let greedy = sampler.temp <= 0.0;
        let (text, logprobs, stats) = answer(&mut engine, prompt, options(sampler.clone(), None));
        assert_eq!((stats.n_drafted, logprobs.len()), (0, stats.n_token));
        for n_max in [1, 6] {
            let guess = Speculation { n_max, n_match: 1 };
            let mut check = |draft: Option<Engine>, what: &str| {
                engine.clear();
                engine.set_draft(draft).expect("the same vocabulary");
                let o = options(sampler.clone(), Some(guess));
                let (found, found_logprobs, stats) = answer(&mut engine, prompt, o);
                assert_eq!(found, text, "{what} of {n_max}");
                let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-3;
                assert!(found_logprobs.iter().zip(&logprobs).all(close), "{what} of {n_max}");
                say(format!("{what} of {n_max}: {} of {} guesses right", stats.n_accepted, stats.n_drafted));
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

/// Grammars are obeyed, and end at the same place as without drafts; on the CPU, too.
#[test]
fn guesses_keep_to_a_grammar() {
    let _t = Timed::new("speculation, grammar");
    let grammar = Grammar::Regex("( (red|blue) ball){5}[.]".into());
    for device in [DeviceChoice::default(), DeviceChoice::Cpu] {
        let mut engine = build(default_engine().device(device));
        let mut told = Vec::new();
        for speculate in [None, Some(Speculation { n_max: 5, n_match: 1 })] {
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
