//! Streams of chats, compared with recorded ones.

use chaski::Finish;
use serde_json::{Value, json};

use super::chat::ask;
use crate::error::{ApiError, Kind};
use crate::testing::{self, call, content, events, reasoning, stats, told};

fn body(more: Value) -> Value {
    let mut body = json!({"stream": true, "messages": [{"role": "user", "content": "Lima or Cusco?"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The recorded chunks. Log probabilities that nobody asked for may be absent or null.
fn recorded(name: &str) -> Vec<Value> {
    let mut chunks = testing::contract_events(name);
    for chunk in &mut chunks {
        if let Some(choice) = chunk.pointer_mut("/choices/0").and_then(Value::as_object_mut) {
            choice.retain(|name, value| name != "logprobs" || !value.is_null());
        }
    }
    chunks
}

#[test]
fn a_stream_of_reasoning_and_two_calls_is_as_clients_expect_it() {
    let mut expected = recorded("openai-chat-reasoning-two-tools.json");
    let mut parts = vec![reasoning("Two "), reasoning("cities."), content("Let me look.")];
    parts.extend(call("get_weather", &["{\"city\":", "\"Lima\"}"]));
    parts.extend(call("get_weather", &["{\"city\":\"Cusco\"}"]));
    let (_, mut writer) = testing::ask(ask, &body(json!({"stream_options": {"include_usage": true}})));
    let events = events(&parts, Finish::Stop, stats(4, 16, 30));
    let found = testing::stream(&mut *writer, &told("chatcmpl-", 20), &events);
    assert_eq!(expected.pop(), Some(json!("[DONE]")), "the wire adds it");
    // A part is a token here, which counts as reasoning after the first.
    expected.last_mut().unwrap()["usage"]["completion_tokens_details"]["reasoning_tokens"] = 2.into();
    testing::assert_covers(&found.into(), &expected.into(), "");
}

#[test]
fn a_stream_that_fails_ends_with_the_error() {
    let expected = recorded("openai-chat-error-in-stream.json");
    let (_, mut writer) = testing::ask(ask, &body(json!({})));
    let told = told("chatcmpl-", 20);
    let mut events = events(&[content("Once")], Finish::Stop, stats(20, 0, 1));
    events.pop();
    let mut found = testing::stream(&mut *writer, &told, &events);
    let message = expected[2]["error"]["message"].as_str().unwrap();
    let error = ApiError::new(Kind::DeviceLost, message);
    assert!(writer.failed(&told, &error).is_none(), "it is said as any response says it");
    found.push(error.openai(false));
    testing::assert_covers(&found.into(), &expected.into(), "");
}

#[test]
fn the_lowest_priority_is_served_first() {
    for (asked, expected) in [(json!(7), -7), (json!(-7), 7), (json!(null), 0)] {
        let body = json!({"prompt": "A", "priority": asked});
        assert_eq!(testing::ask(super::completions::ask, &body).0.priority, expected);
    }
}

#[test]
fn cached_tokens_of_a_prompt_count_once() {
    let mut told = testing::told("cmpl-", 10);
    told.prompts.push(told.prompts[0].clone());
    told.n = 2;
    let stats = [(4, 1), (9, 1), (2, 1), (9, 1)].map(|(cached, n)| testing::stats(10 - cached, cached, n));
    let usage = super::Usage::of(&told, stats.iter().map(|stats| (stats, 0))).json(&told);
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 6);
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(20), &json!(4)));
}
