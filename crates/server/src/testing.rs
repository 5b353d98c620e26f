//! Tools of the tests of dialects: events of answers, and recorded streams.

use std::path::Path;
use std::sync::Arc;

use chaski::text::{Answer, AnswerEvent};
use chaski::{ChatEvent, DeviceChoice, Engine, Finish, Source, Stats};
use serde_json::Value;

use crate::answers::{Gathered, Outcome};
use crate::ask::{Ask, Read};
use crate::dialect::{Frame, ReadAsk, Told, Writer};
use crate::error::ApiError;
use crate::model::{Facts, ModelOptions, Served};

/// A model with a template that knows tools.
pub(crate) fn facts() -> Facts {
    let mut facts = Facts::for_tests();
    facts.about.template = Some("{{ messages }}{{ tools }}".into());
    facts.about.has_tools = true;
    facts
}

/// The built-in model on the CPU.
pub(crate) fn served() -> Served {
    let engine = Engine::builder(Source::Default).context(64).sequences(1).device(DeviceChoice::Cpu).build();
    let options = ModelOptions { n_seq: 1, ..ModelOptions::default() };
    Served::new(pollster::block_on(engine).expect("the model can be loaded"), options).expect("a thread")
}

pub(crate) fn ask(read: ReadAsk, body: &Value) -> (Ask, Box<dyn Writer>) {
    match read(body, &facts()) {
        Ok(found) => found,
        Err(error) => panic!("{body}: {}", error.message),
    }
}

pub(crate) fn refusal(read: ReadAsk, body: &Value) -> ApiError {
    match read(body, &facts()) {
        Ok(_) => panic!("{body} should be refused"),
        Err(error) => error,
    }
}

/// Answers of the model `m` to a prompt of so many tokens.
pub(crate) fn told(prefix: &str, n_prompt: usize) -> Told {
    let prompts = vec![Read { tokens: vec![1; n_prompt], ..Read::default() }];
    let (id, model, facts) = (format!("{prefix}1"), "m".to_owned(), Arc::new(facts()));
    Told {
        id,
        created: 1,
        model,
        fingerprint: "chaski-1".into(),
        facts,
        prompts,
        n: 1,
        lora: Vec::new(),
        slots: Arc::default(),
    }
}

pub(crate) fn reasoning(text: &str) -> AnswerEvent {
    AnswerEvent::Reasoning(text.into())
}

pub(crate) fn content(text: &str) -> AnswerEvent {
    AnswerEvent::Content(text.into())
}

/// A whole call, its arguments in these pieces.
pub(crate) fn call(name: &str, arguments: &[&str]) -> Vec<AnswerEvent> {
    let mut events = vec![AnswerEvent::CallBegin { name: name.into() }];
    events.extend(arguments.iter().map(|piece| AnswerEvent::Arguments((*piece).into())));
    events.push(AnswerEvent::CallEnd { is_valid: true, written: String::new() });
    events
}

/// The events of an answer with these parts, of one token each; `n_prompt` does not count cached tokens.
pub(crate) fn events(parts: &[AnswerEvent], finish: Finish, stats: Stats) -> Vec<ChatEvent> {
    let (n_prompt, n_cached) = (stats.n_prompt, stats.n_cached);
    let mut events = vec![ChatEvent::Started { n_prompt, n_cached, on_cpu: None }];
    for part in parts {
        let piece = chaski::Piece { text: String::new(), token: Some(1), logprobs: None };
        events.extend([ChatEvent::Piece(piece), ChatEvent::Part(part.clone())]);
    }
    events.push(ChatEvent::Finished { answer: Answer::default(), finish, stats });
    events
}

pub(crate) fn stats(n_prompt: usize, n_cached: usize, n_token: usize) -> Stats {
    Stats { n_prompt, n_cached, n_token, ..Stats::default() }
}

/// The same as a whole.
pub(crate) fn outcome(events: &[ChatEvent]) -> Outcome {
    let mut gathered = Gathered::default();
    events.iter().for_each(|event| gathered.take(event));
    gathered.outcome.expect("the events end an answer")
}

/// A stream in the form of the recorded ones.
pub(crate) fn stream(writer: &mut dyn Writer, told: &Told, events: &[ChatEvent]) -> Vec<Value> {
    let mut frames: Vec<Frame> = events.iter().flat_map(|event| writer.event(told, 0, event)).collect();
    frames.extend(writer.end(told));
    let value = |frame| match frame {
        Frame::Data(value) => value,
        Frame::Event(name, value) => {
            assert_eq!(value["type"], name, "the data has the name of its event");
            value
        }
    };
    frames.into_iter().map(value).collect()
}

/// A recorded stream or body, of fixtures/server/contract.
pub(crate) fn contract(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/server/contract");
    let text = std::fs::read(folder.join(name)).expect("the fixture is there");
    serde_json::from_slice(&text).expect("recorded streams are JSON")
}

/// The data of a recorded stream of events.
pub(crate) fn contract_events(name: &str) -> Vec<Value> {
    let mut recorded = contract(name);
    let events = recorded["events"].as_array_mut().expect("a stream has events");
    events.iter_mut().map(|event| event["data"].take()).collect()
}

/// Values that differ each time.
const VARY: [&str; 12] = [
    "id",
    "item_id",
    "call_id",
    "created_at",
    "modified_at",
    "system_fingerprint",
    "total_duration",
    "load_duration",
    "prompt_eval_duration",
    "eval_duration",
    "digest",
    "expires_at",
];

/// Asserts that a value says all that is expected, and perhaps more in objects.
pub(crate) fn assert_covers(found: &Value, expected: &Value, path: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (name, expected) in expected {
                let path = format!("{path}.{name}");
                let found = found.get(name).unwrap_or_else(|| panic!("{path} is missing"));
                if VARY.contains(&&**name) {
                    assert_eq!(found.is_string(), expected.is_string(), "{path}: {found}");
                } else {
                    assert_covers(found, expected, &path);
                }
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{path}: {found:#?}");
            for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert_covers(found, expected, &format!("{path}[{i}]"));
            }
        }
        _ => assert_eq!(found, expected, "{path}"),
    }
}
