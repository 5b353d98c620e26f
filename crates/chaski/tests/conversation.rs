//! Conversations longer than the context.
//!
//! A separate binary, because it measures the memory of its process.
#![allow(clippy::print_stderr, reason = "a test reports what it found")]
#![cfg(feature = "default-model")]

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chaski::text::{Answer, TemplateOptions};
use chaski::{
    ChatEvent, DeviceChoice, Engine, Finish, GenerateOptions, Message, SamplerParams, Source, Stats,
};
use pollster::block_on;

const N_CTX: u32 = 256;

/// Tokens between two reports of the long test.
const REPORT: usize = 100_000;

/// One test at a time, so that the memory of the process is that of one engine.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if long tests run in full.
fn full() -> bool {
    std::env::var_os("CHASKI_TEST_FULL").is_some_and(|v| v != "0")
}

/// The built-in model; on a GPU, if there is one and a million tokens are to come.
fn engine() -> Engine {
    let device = if full() { DeviceChoice::Auto } else { DeviceChoice::Cpu };
    let builder = Engine::builder(Source::Default).device(device).context(N_CTX);
    block_on(builder.build()).expect("the built-in model runs")
}

fn options(max_tokens: Option<usize>) -> GenerateOptions {
    let sampler = SamplerParams { temp: 0.0, ..SamplerParams::default() };
    GenerateOptions { max_tokens, sampler, ..GenerateOptions::default() }
}

/// An answer to a conversation, and the number of messages that its prompt does not have.
fn ask(
    engine: &mut Engine,
    messages: &[Message],
    options: GenerateOptions,
) -> (usize, (Answer, Finish, Stats)) {
    let mut chat = engine.chat(messages, &TemplateOptions::default(), options).expect("a prompt");
    let mut n_dropped = 0;
    loop {
        match block_on(chat.next()).expect("no error").expect("an end") {
            ChatEvent::Dropped { n_message } => n_dropped = n_message,
            ChatEvent::Finished { answer, finish, stats } => return (n_dropped, (answer, finish, stats)),
            _ => {}
        }
    }
}

/// A question that nothing before it determines.
fn question(n: usize) -> Message {
    let (a, b) = (["dog", "boat", "frog", "king", "tree"], ["red", "big", "sad", "old"]);
    Message::new("user", format!("Tell me a story about a {} {}.", b[n % b.len()], a[n % a.len()]))
}

#[test]
fn the_oldest_turns_are_dropped_and_the_system_message_stays() {
    let _alone = alone();
    let mut engine = engine();
    let system = Message::new("system", "You are a kind storyteller.");
    let mut messages = vec![system.clone()];
    let mut dropped = Vec::new();
    for n in 0..10 {
        messages.push(question(n));
        let (n_dropped, (answer, ..)) = ask(&mut engine, &messages, options(Some(40)));
        let prompt = engine.fit_prompt(&messages, &TemplateOptions::default(), &options(Some(40))).unwrap();
        let kept = [std::slice::from_ref(&system), &messages[1 + n_dropped..]].concat();
        assert_eq!(prompt.text, engine.chat_prompt(&kept, &TemplateOptions::default()).unwrap().text);
        let n_token = prompt.tokens.len();
        assert!(n_token <= N_CTX as usize - 40 && kept[1].role == "user", "{n_token}");
        dropped.push(n_dropped);
        messages.push(answer.into_message(0));
    }
    assert!(dropped.is_sorted() && dropped[0] == 0 && dropped[9] >= 4, "{dropped:?}");
}

#[test]
fn an_answer_that_fills_the_context_is_cut_and_the_next_one_goes_on() {
    let _alone = alone();
    let mut engine = engine();
    let mut messages = vec![question(0)];
    let endless = || {
        let o = options(None);
        GenerateOptions { sampler: SamplerParams { ignore_eos: true, ..o.sampler }, ..o }
    };
    let (n_dropped, (answer, finish, stats)) = ask(&mut engine, &messages, endless());
    assert_eq!((n_dropped, finish), (0, Finish::Context));
    assert!(stats.n_prompt + stats.n_token >= N_CTX as usize, "{stats:?}");
    messages.extend([answer.into_message(0), question(1)]);
    let (n_dropped, (answer, ..)) = ask(&mut engine, &messages, options(Some(30)));
    assert_eq!(n_dropped, 2);
    let (_, (alone, ..)) = ask(&mut engine, &messages[2..], options(Some(30)));
    assert_eq!(answer, alone);
}

#[test]
fn what_does_not_fit_is_refused_with_both_numbers() {
    let _alone = alone();
    let mut engine = engine();
    let long = [Message::new("user", "Once upon a time. ".repeat(100))];
    let e = engine.chat(&long, &TemplateOptions::default(), options(None)).unwrap_err();
    assert_eq!(e.code(), "context_overflow");
    let text = e.to_string();
    let numbers: Vec<usize> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    assert!(numbers[0] > 400 && numbers[1..] == [N_CTX as usize], "{text}");
    // Without dropping, a conversation that is too long is refused, too.
    let strict = || GenerateOptions { drop_turns: false, ..options(Some(8)) };
    let many: Vec<Message> = (0..40).flat_map(|n| [question(n), Message::new("assistant", "No.")]).collect();
    let conversation = &many[..79];
    let e = engine.chat(conversation, &TemplateOptions::default(), strict()).unwrap_err();
    assert_eq!(e.code(), "context_overflow");
    assert!(ask(&mut engine, conversation, options(Some(8))).0 > 0);
}

/// Resident memory in bytes without the pages of files, such as code that runs for the first time, where the system
/// says it.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(1024.0 * line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()?)
}

#[test]
fn memory_stays_flat_however_long_a_conversation_goes_on() {
    let _alone = alone();
    // The first number fills all caches that have a bound.
    let (warm, goal) = if full() { (20_000, 1_000_000) } else { (800, 2_000) };
    let (mut engine, start) = (engine(), Instant::now());
    let mut messages = Vec::new();
    let (mut n_token, mut n_turn, mut n_dropped) = (0, 0, 0);
    let mut begun: Option<(usize, Option<f64>)> = None;
    while n_token < goal {
        messages.push(question(n_turn));
        let (dropped, (answer, _, stats)) = ask(&mut engine, &messages, options(Some(24)));
        let new = stats.n_prompt + stats.n_token;
        if n_token / REPORT < (n_token + new) / REPORT {
            eprintln!("{} tokens after {:.1?}: {:.2?} bytes", n_token + new, start.elapsed(), resident());
        }
        n_token += new;
        n_turn += 1;
        n_dropped += dropped;
        messages.push(answer.into_message(0));
        messages.drain(..dropped);
        if begun.is_none() && n_token >= warm {
            begun = Some((n_token, resident()));
        }
    }
    assert!(
        n_dropped + messages.len() == 2 * n_turn && messages.len() < 40,
        "{n_dropped} {}",
        messages.len()
    );
    let (from, Some(before)) = begun.expect("the goal is further away") else {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        let line = format!("SKIPPED {test}: for want of a system that tells resident memory\n");
        return std::io::stderr().write_all(line.as_bytes()).unwrap();
    };
    let after = resident().expect("it was known before");
    eprintln!(
        "{n_token} tokens in {n_turn} turns, {n_dropped} messages dropped, {:.1?}: {:.2} MB after {from}, {:.2} MB at the end",
        start.elapsed(),
        before / 1e6,
        after / 1e6
    );
    // The allocator keeps some of what is freed. A row of logits that stays for each token would be 10 MB.
    let slack = if full() { 0.01 * before } else { 2e6 };
    assert!(after <= before + slack, "{before} bytes, then {after}");
}
