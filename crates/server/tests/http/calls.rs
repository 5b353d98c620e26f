//! The number of calls in an answer.

use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

/// A text with two calls, in the notation of the template.
const TWO: &str = r#"<tool_call>\{"name": "f", "arguments": \{\}\}</tool_call>\n<tool_call>\{"name": "f", "arguments": \{\}\}</tool_call>"#;

fn start() -> Running {
    let mut setup = Setup::built_in(1);
    setup.chat_template("{# <tool_call> #}{% for m in messages %}{{ m.content }}{% endfor %}");
    setup.start()
}

/// The answer of a model that wants to call twice, and is free to.
fn ask(running: &Running, more: Value) -> Answer {
    let function = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}});
    let mut body = json!({"messages": [{"role": "user", "content": "Go."}], "temperature": 0, "max_tokens": 200,
        "tools": [function], "guided_regex": TWO});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let answer = running.post("/v1/chat/completions", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

#[test]
fn an_answer_without_parallel_calls_ends_after_the_first() {
    let running = start();
    let of = |more: Value| {
        let answer = ask(&running, more);
        let choice = &answer.body["choices"][0];
        let n_call = choice["message"]["tool_calls"].as_array().map_or(0, Vec::len);
        (n_call, choice["finish_reason"].clone(), answer.body["usage"]["completion_tokens"].as_u64())
    };
    let (n_call, finish, n_all) = of(json!({}));
    assert_eq!((n_call, finish), (2, json!("tool_calls")));
    assert_eq!(of(json!({"parallel_tool_calls": true})).0, 2);
    let (n_call, finish, n_one) = of(json!({"parallel_tool_calls": false}));
    assert_eq!((n_call, finish), (1, json!("tool_calls")));
    assert!(n_one < n_all, "{n_one:?} of {n_all:?} tokens");

    let streamed = ask(&running, json!({"parallel_tool_calls": false, "stream": true}));
    let begins = |event: &&Value| event["choices"][0]["delta"]["tool_calls"][0]["id"].is_string();
    let events: Vec<Value> = streamed.events.iter().map(|(_, data)| data.clone()).collect();
    assert_eq!(events.iter().filter(begins).count(), 1, "{}", streamed.text);
    let last = events.iter().rev().find(|event| event["choices"][0]["finish_reason"].is_string());
    assert_eq!(last.expect("an end")["choices"][0]["finish_reason"], "tool_calls");
    // Its place is free for the next one.
    assert_eq!(of(json!({})).0, 2);
}
