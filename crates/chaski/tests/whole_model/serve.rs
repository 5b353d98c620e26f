//! A service: each answer equals that of its prompt alone, whatever runs beside it.

use std::task::{Context, Poll, Waker};

use chaski::serve::{Event, Request, ServeError};
use chaski::text::{AddSpecial, ParseSpecial, TemplateOptions};
use chaski::{
    ChatEvent, DeviceChoice, Engine, EngineBuilder, Error, Finish, GenerateOptions, Grammar, Handle, Message,
    SamplerParams, Source, Stats,
};
use chaski_models::KvType;
use chaski_models::serve::Answer;
use chaski_runtime::kernels::FeatureSet;

use crate::archs::Fixture;
use crate::common::{
    Timed, block_on, build, chain, default_engine, full, greedy, in_turns, left_for_full, shared_gpu,
};

const PROMPTS: [&str; 5] =
    ["Once upon a time", "The little dog saw a", "One day, Lily", "Tom was sad because", "In the morning"];

/// Outcome of a request.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) tokens: Vec<u32>,
    pub(crate) finish: Option<(Finish, Stats)>,
    pub(crate) failed: Option<String>,
    pub(crate) on_cpu: Option<&'static str>,
}

/// Reads an answer to its end.
pub(crate) fn outcome(mut answer: Answer) -> Outcome {
    let mut out = Outcome::default();
    while let Some(event) = block_on(answer.next()) {
        match event {
            Event::Started { on_cpu, .. } => out.on_cpu = on_cpu,
            Event::Prompt { .. } => {}
            Event::Piece(piece) => {
                out.text.push_str(&piece.text);
                out.tokens.extend(piece.token);
            }
            Event::Finished { finish, stats } => out.finish = Some((finish, stats)),
            Event::Failed { error } => out.failed = Some(error.to_string()),
            other => panic!("an event that nobody knows: {other:?}"),
        }
    }
    out
}

/// The events that an answer has now.
pub(crate) fn ready(answer: &mut Answer) -> Vec<Event> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut events = Vec::new();
    while let Poll::Ready(Some(event)) = std::pin::pin!(answer.next()).poll(&mut cx) {
        events.push(event);
    }
    events
}

fn spawn(builder: EngineBuilder) -> Handle {
    build(builder).spawn().expect("a thread")
}

fn tokens(engine: &Engine, text: &str) -> Vec<u32> {
    engine.tokenizer().encode(text, AddSpecial::Yes, ParseSpecial::No).expect("the text is spelled")
}

pub(crate) fn seeded(seed: u32, n: usize) -> GenerateOptions {
    let sampler = SamplerParams { seed: Some(seed), temp: 0.9, ..SamplerParams::default() };
    GenerateOptions { sampler, ..greedy(n) }
}

fn penalised(seed: u32, n: usize) -> GenerateOptions {
    let mut options = seeded(seed, n);
    (options.sampler.penalty_repeat, options.sampler.logit_bias) = (1.2, vec![(300, 1.5)]);
    options
}

fn alone(engine: &mut Engine, prompt: &[u32], options: &GenerateOptions) -> String {
    let mut g = engine.generate_tokens(prompt, options.clone()).expect("a prompt");
    let mut text = String::new();
    while let Some(piece) = block_on(g.next()).expect("the device runs") {
        text.push_str(&piece.text);
    }
    text
}

fn ask(handle: &Handle, prompt: &[u32], options: &GenerateOptions) -> Answer {
    handle.generate_tokens(Request::new(prompt.to_vec(), options.clone())).expect("a request that fits")
}

/// Waits until a service has released dropped requests.
fn settle(handle: &Handle) {
    while handle.load().n_running + handle.load().n_waiting > 0 {
        std::thread::yield_now();
    }
}

/// Greedy, sampled and penalised answers of several lengths, 1, 2, 7 and 32 at once, in two orders of arrival, some of
/// them cancelled: each equals the answer of its prompt alone, sampled on the device.
#[test]
fn answers_are_those_of_each_prompt_by_itself() {
    let _t = Timed::new("serve, texts");
    let mut single = build(default_engine());
    let requests: Vec<(Vec<u32>, GenerateOptions)> = (0..32u32)
        .map(|i| {
            let prompt = tokens(&single, PROMPTS[i as usize % PROMPTS.len()]);
            let n = 4 + (i as usize * 5) % if full() { 17 } else { 7 };
            let options = match i % 3 {
                0 => greedy(n),
                1 => seeded(i, n),
                _ => penalised(i, n),
            };
            (prompt, options)
        })
        .collect();
    let expected: Vec<String> = requests.iter().map(|(p, o)| alone(&mut single, p, o)).collect();
    let handle = spawn(default_engine().sequences(32).context(128));
    for (nth, n) in [1, 2, 7, 32].into_iter().enumerate() {
        for backwards in in_turns(nth, &[false, true]) {
            let mut order: Vec<usize> = (0..n).collect();
            if backwards {
                order.reverse();
            }
            let mut answers: Vec<(usize, Answer)> =
                order.into_iter().map(|i| (i, ask(&handle, &requests[i].0, &requests[i].1))).collect();
            // Every fourth is cancelled, some before any output.
            if backwards && n > 4 {
                for at in (0..n).step_by(4).rev() {
                    let (_, mut answer) = answers.remove(at);
                    if at % 8 == 0 {
                        block_on(answer.next()).expect("an event");
                    }
                }
            }
            for (i, answer) in answers {
                let found = outcome(answer);
                assert_eq!(found.text, expected[i], "request {i} of {n}, backwards {backwards}");
                assert!(matches!(found.finish, Some((Finish::Length | Finish::Stop, _))), "{found:?}");
                assert_eq!(found.on_cpu, None, "request {i}: the device chooses");
            }
            settle(&handle);
        }
    }
    assert_eq!(handle.load().n_used(), 0);
}

/// Prompts share a common prefix, both while the first is being answered and after it has ended.
#[test]
fn what_prompts_begin_with_is_run_once() {
    let _t = Timed::new("serve, shared beginnings");
    let story =
        "Once upon a time there was a little girl who had a red ball. She liked to play in the park. "
            .repeat(8);
    let mut single = build(default_engine());
    let [a, b] = ["One day she", "Her friend Tom"].map(|end| tokens(&single, &(story.clone() + end)));
    let alike = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    assert!(alike > 130, "{alike} tokens should be more than two pages");
    let options = greedy(if full() { 12 } else { 6 });
    let expected = [&a, &b].map(|p| alone(&mut single, p, &options));
    let handle = spawn(default_engine().sequences(3));
    let n_cached = |found: &Outcome| found.finish.as_ref().map_or(0, |f| f.1.n_cached);
    let first = outcome(ask(&handle, &a, &options));
    assert_eq!((&first.text, n_cached(&first)), (&expected[0], 0));
    // At least whole pages of 64 tokens, from a request that has ended.
    let second = outcome(ask(&handle, &b, &options));
    assert_eq!(second.text, expected[1]);
    assert!((alike / 64 * 64..=alike).contains(&n_cached(&second)), "{} of {alike}", n_cached(&second));
    // Identical to the first.
    let third = outcome(ask(&handle, &a, &options));
    assert_eq!(third.text, expected[0]);
    assert!(n_cached(&third) >= (a.len() - 1) / 64 * 64, "{} of {}", n_cached(&third), a.len());
    let both = [ask(&handle, &a, &options), ask(&handle, &b, &options)].map(outcome);
    assert_eq!(both.map(|o| o.text), expected);
}

/// A pool with room for few contexts: requests wait or are preempted, and none fails.
#[test]
fn many_sequences_share_a_small_pool() {
    let _t = Timed::new("serve, a small pool");
    // By default on the CPU, which is faster than a software device.
    let default_engine =
        || if full() { default_engine() } else { default_engine().device(DeviceChoice::Cpu).kv(KvType::F32) };
    let mut single = build(default_engine().context(256));
    let n = if full() { 8 } else { 3 };
    let prompts: Vec<Vec<u32>> =
        (0..n).map(|i| tokens(&single, &format!("{} {i}", PROMPTS[i % PROMPTS.len()]))).collect();
    let mut options = greedy(150);
    options.sampler.ignore_eos = true;
    let expected: Vec<String> = prompts.iter().map(|p| alone(&mut single, p, &options)).collect();
    // One context, most of which each request needs.
    let handle = spawn(default_engine().context(256).sequences(3).kv_tokens(256));
    let answers: Vec<Answer> = prompts.iter().map(|p| ask(&handle, p, &options)).collect();
    for (answer, expected) in answers.into_iter().zip(&expected) {
        assert_eq!(&outcome(answer).text, expected);
    }
    settle(&handle);
    let load = handle.load();
    assert_eq!((load.n_used(), load.n_token()), (0, 256), "{load:?}");
    assert!(load.n_preempted > 0, "the pool was too small for all at once: {load:?}");
    // Prompts that together need more than the pool: some wait while there are slots.
    let (n_ctx, n_seq, n_token, n_long, lengths, kv) = if full() {
        (8192, 64, 65_536, 24, [2800, 3000, 3200], KvType::F16)
    } else {
        (1024, 16, 4096, 12, [320, 450, 580], KvType::F32)
    };
    // Prompts longer than the model was trained for have near ties: their texts depend on how sums are rounded.
    let engine = |n| default_engine().context(n_ctx).sequences(n).kv(kv).deterministic(true);
    let with = |n| GenerateOptions { max_tokens: Some(n), ..options.clone() };
    let repeated = |i: usize| -> Vec<u32> { prompts[i].iter().copied().cycle().take(lengths[i]).collect() };
    let short = prompts.iter().map(|p| (p.clone(), with(3)));
    let cases: Vec<(Vec<u32>, GenerateOptions)> =
        (0..3).map(|i| (repeated(i), with(20))).chain(short).collect();
    let mut single = build(engine(1));
    let expected: Vec<String> = cases.iter().map(|(p, o)| alone(&mut single, p, o)).collect();
    let handle = spawn(engine(n_seq).kv_tokens(n_token));
    assert_eq!(handle.load().n_token(), n_token as usize);
    let case = |i: usize| if i < n_long { i % 3 } else { 3 + i % n };
    let answers: Vec<Answer> = (0..n_seq as usize)
        .map(|i| {
            let (prompt, options) = &cases[case(i)];
            // Requests with different salts share no prefix.
            let request = Request { salt: i as u32, ..Request::new(prompt.clone(), options.clone()) };
            handle.generate_tokens(request).expect("a request that fits")
        })
        .collect();
    for (i, answer) in answers.into_iter().enumerate() {
        let found = outcome(answer);
        assert_eq!((&found.text, &found.failed), (&expected[case(i)], &None), "request {i}");
        assert_eq!(Some(found.tokens.len()), cases[case(i)].1.max_tokens, "request {i}");
        let load = handle.load();
        let waits = load.n_waiting > 0 && load.n_running < n_seq as usize;
        assert!(i > 0 || waits, "the pool was too small for all at once: {load:?}");
    }
    settle(&handle);
    assert_eq!(handle.load().n_used(), 0);
    // Less than a context is an error at load.
    let error = block_on(default_engine().context(256).kv_tokens(200).build())
        .map(drop)
        .expect_err("a pool too small");
    let message = error.to_string();
    assert!(
        message.contains("192") && message.contains("256") && message.contains("64 are missing"),
        "{message}"
    );
    let error = block_on(default_engine().context(256).kv_memory(1000).build())
        .map(drop)
        .expect_err("a pool too small");
    assert!(error.to_string().contains("1000 bytes, but a context of 256 tokens takes"), "{error}");
}

/// A context per sequence would be more than a binding: the pool is what fits, if that is asked for.
#[test]
fn a_pool_fits_the_bindings_of_the_device() {
    if left_for_full() {
        return;
    }
    let _t = Timed::new("serve, a pool that fits");
    let mut single = build(default_engine().context(256));
    let prompts: Vec<Vec<u32>> = PROMPTS.iter().map(|p| tokens(&single, p)).take(3).collect();
    let options = greedy(16);
    let expected: Vec<String> = prompts.iter().map(|p| alone(&mut single, p, &options)).collect();
    // A token has keys and values of 4 heads of 32 channels in f16: 512 bytes a layer.
    let n_byte = 1024 * 512;
    let limited = || {
        let engine = default_engine().context(256).kv(KvType::F16).sequences(64);
        engine.chunk(32).max_binding_bytes(n_byte)
    };
    let error = block_on(limited().build()).map(drop).expect_err("16,384 tokens");
    let error = chain(&error);
    assert!(error.contains("KV cache") && error.contains(&n_byte.to_string()), "{error}");
    let handle = spawn(limited().kv_fits(true));
    assert_eq!(handle.load().n_token(), 1024);
    let answers: Vec<Answer> = (0..6).map(|i| ask(&handle, &prompts[i % 3], &options)).collect();
    for (i, answer) in answers.into_iter().enumerate() {
        assert_eq!(outcome(answer).text, expected[i % 3]);
    }
    // All contexts, where they fit, and where a number is given that does.
    let all = build(default_engine().context(256).kv(KvType::F16).sequences(3).kv_fits(true));
    assert_eq!(all.loaded().kv_tokens(), 768);
    let given = build(limited().kv_fits(true).kv_tokens(512));
    assert_eq!(given.loaded().kv_tokens(), 512);
    // A number that does not fit, and a context that does not, are errors with both sizes.
    for (engine, needed) in
        [(limited().kv_tokens(2048), 2048), (limited().context(1088), 1088), (limited().context(8192), 8192)]
    {
        let error = block_on(engine.kv_fits(true).build()).map(drop).expect_err("too large");
        let error = chain(&error);
        let needed = (needed * 512).to_string();
        assert!(error.contains(&needed) && error.contains(&n_byte.to_string()), "{error}");
    }
}

/// Requests that end early, in every possible way.
#[test]
fn requests_come_and_go() {
    let _t = Timed::new("serve, requests");
    let mut single = build(default_engine().context(64));
    let prompt = tokens(&single, PROMPTS[0]);
    let long = alone(&mut single, &prompt, &greedy(1000));
    let digits = Grammar::Regex("[0-9]{6}".into());
    let handle = spawn(default_engine().sequences(2).context(64));
    let refused = |prompt: &[u32]| {
        let request = Request::new(prompt.to_vec(), greedy(4));
        handle.generate_tokens(request).map(drop).expect_err("a prompt that cannot be").to_string()
    };
    assert!(refused(&[]).contains("no tokens"));
    assert!(refused(&[u32::MAX]).contains("4294967295"));
    let found = refused(&vec![prompt[0]; 65]);
    assert!(found.contains("65") && found.contains("64"), "{found}");
    let nothing = ask(&handle, &prompt, &greedy(0));
    let mut given_up = ask(&handle, &prompt, &greedy(50));
    let until_full = ask(&handle, &prompt, &greedy(1000));
    let waiting = ask(&handle, &prompt, &greedy(50));
    let options = GenerateOptions { grammar: Some(digits), logprobs: Some(2), ..greedy(50) };
    let constrained = ask(&handle, &prompt, &options);
    block_on(given_up.next()).expect("an event");
    drop((given_up, waiting));
    assert_eq!(outcome(nothing).finish.map(|f| f.0), Some(Finish::Length));
    let found = outcome(until_full);
    assert_eq!((found.finish.map(|f| f.0), found.text), (Some(Finish::Context), long.clone()));
    let found = outcome(constrained);
    assert!(found.text.len() == 6 && found.text.chars().all(|c| c.is_ascii_digit()), "{found:?}");
    assert_eq!((found.finish.map(|f| f.0), found.on_cpu.is_some()), (Some(Finish::Stop), true));
    assert_eq!(outcome(ask(&handle, &prompt, &greedy(1000))).text, long);
}

/// A caller leaves in the middle of its prompt: its pages are free, the rows that ran remain useful, and the answer
/// beside it is that of its prompt alone.
#[test]
fn a_prompt_that_is_dropped_in_its_middle_frees_its_pages() {
    let _t = Timed::new("serve, a dropped prompt");
    let engine = |n| default_engine().sequences(n).context(384).chunk(16);
    let mut single = build(engine(1));
    let story =
        "Once upon a time there was a little girl who had a red ball. She liked to play in the park. ";
    let n = if full() { 8 } else { 4 };
    let prompts = [PROMPTS[1].to_owned(), story.repeat(n) + "One day she"].map(|p| tokens(&single, &p));
    let options = greedy(n + 4);
    let expected = prompts.each_ref().map(|p| alone(&mut single, p, &options));
    let (handle, mut driver) = build(engine(2)).serve();
    let [beside, mut dropped] = prompts.each_ref().map(|p| ask(&handle, p, &options));
    let mut n_sent = 0;
    while n_sent == 0 {
        assert!(block_on(driver.turn()).expect("a step"), "two requests are open");
        for event in ready(&mut dropped) {
            match event {
                Event::Prompt { n_sent: n } => n_sent = n,
                Event::Started { n_prompt, .. } => assert_eq!(n_prompt, prompts[1].len()),
                other => panic!("{other:?} before the prompt has run"),
            }
        }
    }
    let load = handle.load();
    assert!(load.n_running == 2 && load.n_used() > n_sent, "{load:?}");
    drop(dropped);
    let thread = driver.spawn().expect("a thread");
    assert_eq!(outcome(beside).text, expected[0]);
    settle(&handle);
    assert_eq!(handle.load().n_used(), 0);
    let again = outcome(ask(&handle, &prompts[1], &options));
    assert_eq!(again.text, expected[1]);
    let n_cached = again.finish.map(|f| f.1.n_cached);
    assert!(n_sent + 16 < prompts[1].len() && n_cached == Some(n_sent), "{n_sent} sent, {n_cached:?} cached");
    drop(handle);
    thread.join().expect("no panic").expect("no error");
}

/// No token is allowed for one of three requests: it fails, and the others continue.
#[test]
fn one_that_fails_leaves_the_others_alone() {
    let _t = Timed::new("serve, failures");
    let mut single = build(default_engine());
    let prompt = tokens(&single, PROMPTS[0]);
    let expected = alone(&mut single, &prompt, &greedy(12));
    let mut hopeless = greedy(12);
    hopeless.sampler.logit_bias = (0..single.runner().n_vocab()).map(|t| (t, f32::NEG_INFINITY)).collect();
    let handle = spawn(default_engine().sequences(2));
    let [good, bad, later] =
        [&greedy(12), &hopeless, &greedy(12)].map(|options| ask(&handle, &prompt, options)).map(outcome);
    assert!(bad.failed.is_some() && bad.finish.is_none(), "{bad:?}");
    for found in [good, later] {
        assert_eq!((found.text.as_str(), found.failed), (expected.as_str(), None));
    }
}

/// The CPU runs the same steps, with the same results.
#[test]
fn the_cpu_serves_too() {
    let _t = Timed::new("serve, CPU");
    let builder = |n| Engine::builder(Source::Default).device(DeviceChoice::Cpu).sequences(n).context(64);
    let mut single = build(builder(1));
    let prompts: Vec<Vec<u32>> = PROMPTS[..3].iter().map(|p| tokens(&single, p)).collect();
    let options = [greedy(6), seeded(3, 6), penalised(4, 6)];
    let requests = || prompts.iter().zip(&options);
    let expected: Vec<String> = requests().map(|(p, o)| alone(&mut single, p, o)).collect();
    let handle = spawn(builder(2));
    let answers: Vec<Answer> = requests().map(|(p, o)| ask(&handle, p, o)).collect();
    let found: Vec<String> = answers.into_iter().map(|a| outcome(a).text).collect();
    assert_eq!(found, expected);
}

/// A conversation's parts arrive as events, and add up to the whole answer.
#[test]
fn a_chat_gives_parts_and_the_whole() {
    let _t = Timed::new("serve, chat");
    let handle = spawn(default_engine());
    let messages = [Message::new("user", "Tell me a story.")];
    let found = handle.chat(&messages, &TemplateOptions::default(), greedy(8));
    let mut chat = match found {
        Ok(chat) => chat,
        // The default model tells stories, and may have no template.
        Err(Error::NoTemplate) => {
            return assert!(
                block_on(default_engine().build())
                    .is_ok_and(|e| { e.template(false).is_ok_and(|t| t.is_none()) })
            );
        }
        Err(e) => panic!("{e}"),
    };
    let mut content = String::new();
    while let Some(event) = block_on(chat.next()) {
        match event {
            ChatEvent::Part(chaski::text::AnswerEvent::Content(text)) => content.push_str(&text),
            ChatEvent::Finished { answer, stats, .. } => {
                assert_eq!((answer.content, stats.n_token), (std::mem::take(&mut content), 8));
            }
            ChatEvent::Failed { error } => panic!("{error}"),
            _ => {}
        }
    }
}

/// The driver ends with the last handle, and dropping the driver ends all answers.
#[test]
fn services_end() {
    let _t = Timed::new("serve, ends");
    let (handle, driver) = build(default_engine()).serve();
    let answer = handle.generate(PROMPTS[0], greedy(500)).expect("a prompt");
    drop(driver);
    assert_eq!(outcome(answer).failed.as_deref(), Some("the service was stopped"));
    assert!(matches!(handle.generate(PROMPTS[0], greedy(1)), Err(Error::Serve(ServeError::Stopped))));
    let (handle, driver) = build(default_engine()).serve();
    let thread = driver.spawn().expect("a thread");
    let answer = handle.generate(PROMPTS[0], greedy(4)).expect("a prompt");
    drop(handle);
    assert_eq!(outcome(answer).tokens.len(), 4);
    thread.join().expect("no panic").expect("no error");
}

/// Recurrent models and models with windows: the same answers together as alone, with prefixes from snapshots where
/// possible.
#[test]
fn recurrent_models_and_windows_are_served() {
    let _t = Timed::new("serve, recurrent models");
    // By default on the CPU.
    let place = |builder: EngineBuilder| {
        if full() {
            builder.gpu(shared_gpu(FeatureSet::Sg, false))
        } else {
            builder.device(DeviceChoice::Cpu)
        }
    };
    for (name, shares) in [("mamba2-dense", true), ("falcon-h1-dense", true), ("gemma3-dense", false)] {
        let f = Fixture::load(name);
        let bytes: &'static [u8] = f.gguf(false, &|_, _| {}).leak();
        let builder = |n| {
            place(Engine::builder(Source::Bytes { name: "fixture.gguf".into(), bytes }))
                .context(256)
                .chunk(16)
                .sequences(n)
                .kv(KvType::F32)
        };
        let long: Vec<u32> = f.tokens.iter().cycle().take(150).copied().collect();
        let prompts = [&long[..], &f.tokens[..9], &long[..140], &f.tokens[3..20]];
        let mut single = build(builder(1));
        let mut by_itself = |prompt: &[u32]| {
            let mut g = single.generate_tokens(prompt, greedy(6)).expect("a prompt");
            while block_on(g.next()).expect("a piece").is_some() {}
            g.tokens().to_vec()
        };
        let expected = prompts.map(&mut by_itself);
        let handle = spawn(builder(3));
        for round in 0..2 {
            let found = prompts.map(|p| ask(&handle, p, &greedy(6))).map(outcome);
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(&found.tokens, expected, "{name}, round {round}, prompt {i}: {found:?}");
            }
            if round == 1 && shares {
                let n_cached = found[0].finish.as_ref().map_or(0, |f| f.1.n_cached);
                assert!(n_cached >= 64, "{name}: {n_cached} tokens come from a snapshot");
            }
        }
    }
}

/// Without a service there are as many sequences as the pool has room for contexts.
#[test]
fn a_pool_bounds_the_sequences_of_a_runner() {
    let mut engine = build(default_engine().context(256).sequences(6).kv_tokens(512));
    assert_eq!(engine.runner().n_seq(), 2);
}
