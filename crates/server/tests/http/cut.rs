//! Calls that are cut at the limit: whole answers say the same as joined streams, and notation is no content.

use serde_json::{Value, json};

use crate::serve::{Running, Setup};

/// Arguments that no limit of these tests has room for.
fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {"n": {"const": 1}, "text": {"type": "string", "minLength": 500}},
        "required": ["n", "text"],
        "additionalProperties": false,
    })
}

fn tool() -> Value {
    json!({"type": "function", "function": {"name": "write", "parameters": parameters()}})
}

/// A conversation with more fields.
fn asking(more: Value) -> Value {
    let mut body =
        json!({"model": "golden", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

/// The text of a field of all values that have it.
fn joined<'v>(values: impl IntoIterator<Item = &'v Value>, at: &str) -> String {
    values.into_iter().filter_map(|value| value.pointer(at)?.as_str()).collect()
}

/// The body of the whole answer, and the data of the stream's events.
fn both(running: &Running, path: &str, body: &Value) -> (Value, Vec<Value>) {
    let ask = |stream: bool| {
        let mut body = body.clone();
        body["stream"] = stream.into();
        let answer = running.post(path, &body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer
    };
    let (whole, streamed) = (ask(false).body, ask(true));
    let lines =
        || streamed.text.lines().map(|line| serde_json::from_str(line).expect("each line is a value"));
    let events = match streamed.events.is_empty() {
        true => lines().collect(),
        false => streamed.events.into_iter().map(|(_, data)| data).collect(),
    };
    (whole, events)
}

/// Limits that cut a call in its arguments.
const LIMITS: [usize; 2] = [70, 90];

#[test]
fn a_call_of_chat_that_is_cut_stays_a_call() {
    let running = Setup::built_in(1).start();
    for limit in LIMITS {
        let body = asking(json!({"max_tokens": limit, "tools": [tool()], "tool_choice": "required"}));
        let (whole, events) = both(&running, "/v1/chat/completions", &body);
        let choice = &whole["choices"][0];
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&Value::Null, &json!("length"))
        );
        let call = &choice["message"]["tool_calls"][0]["function"];
        assert_eq!(call["name"], "write");
        let arguments = call["arguments"].as_str().expect("a text");
        assert!(arguments.contains("\"text\"") && !arguments.contains('}'), "{arguments}");
        let delta = "/choices/0/delta";
        assert_eq!(joined(&events, &format!("{delta}/content")), "");
        assert_eq!(joined(&events, &format!("{delta}/tool_calls/0/function/name")), "write");
        assert_eq!(joined(&events, &format!("{delta}/tool_calls/0/function/arguments")), arguments);
    }
}

#[test]
fn a_second_call_that_is_cut_before_its_name_is_no_content() {
    let running = Setup::built_in(1).start();
    let tool = json!({"type": "function", "function": {"name": "go", "parameters": {
        "type": "object", "properties": {"n": {"const": 1}}, "required": ["n"], "additionalProperties": false}}});
    let more = json!({"tools": [tool], "tool_choice": "required", "parallel_tool_calls": true});
    let mut n_cut = 0;
    for limit in 4..40 {
        let mut body = asking(more.clone());
        body["max_tokens"] = limit.into();
        let (whole, events) = both(&running, "/v1/chat/completions", &body);
        let message = &whole["choices"][0]["message"];
        assert!(matches!(message["content"].as_str(), None | Some("")), "{limit}: {message}");
        assert_eq!(joined(&events, "/choices/0/delta/content"), "", "{limit}");
        n_cut += usize::from(message["tool_calls"].as_array().is_none_or(|calls| calls.len() == 1));
    }
    assert!(n_cut > 10, "the limits cut first and second calls");
}

#[test]
fn a_call_of_a_message_that_is_cut_stays_a_call() {
    let running = Setup::built_in(1).start();
    for limit in LIMITS {
        let tool = json!({"name": "write", "input_schema": parameters()});
        let body = asking(json!({"max_tokens": limit, "tools": [tool], "tool_choice": {"type": "any"}}));
        let (whole, events) = both(&running, "/v1/messages", &body);
        assert_eq!(whole["content"].as_array().map(Vec::len), Some(1), "{whole}");
        let block = &whole["content"][0];
        assert_eq!((&block["type"], &block["name"]), (&json!("tool_use"), &json!("write")));
        // As the SDK reads a beginning: values that are complete.
        assert_eq!((&block["input"], &whole["stop_reason"]), (&json!({"n": 1}), &json!("max_tokens")));
        assert_eq!(joined(&events, "/delta/text"), "");
        let start = events.iter().find(|event| event["type"] == "content_block_start").expect("a block");
        assert_eq!(start["content_block"]["name"], "write");
        let partial = joined(&events, "/delta/partial_json");
        assert!(
            partial.contains("\"text\"") && serde_json::from_str::<Value>(&partial).is_err(),
            "{partial}"
        );
        assert_eq!(joined(&events, "/delta/stop_reason"), "max_tokens");
    }
}

#[test]
fn a_call_of_a_response_that_is_cut_stays_a_call() {
    let running = Setup::built_in(1).start();
    for limit in LIMITS {
        let tool = json!({"type": "function", "name": "write", "parameters": parameters()});
        let body = json!({"input": "Hi", "temperature": 0, "max_output_tokens": limit, "tools": [tool],
            "tool_choice": "required"});
        let (whole, events) = both(&running, "/v1/responses", &body);
        let streamed = &events.last().expect("there are events")["response"];
        for response in [&whole, streamed] {
            assert_eq!(response["output"].as_array().map(Vec::len), Some(1), "{response}");
            assert_eq!(response["status"], "incomplete");
            let item = &response["output"][0];
            assert_eq!((&item["type"], &item["status"]), (&json!("function_call"), &json!("incomplete")));
            assert_eq!(item["arguments"], joined(&events, "/delta"));
        }
    }
}

#[test]
fn a_call_in_lines_that_is_cut_stays_a_call() {
    let running = Setup::built_in(1).start();
    for limit in LIMITS {
        let options = json!({"num_predict": limit, "temperature": 0});
        let body = asking(json!({"options": options, "tools": [tool()], "tool_choice": "required"}));
        let (whole, lines) = both(&running, "/api/chat", &body);
        let calls: Vec<&Value> =
            lines.iter().filter_map(|line| line.pointer("/message/tool_calls/0")).collect();
        assert_eq!(calls.len(), 1, "calls are whole in lines");
        for call in [calls[0], &whole["message"]["tool_calls"][0]] {
            assert_eq!(call["function"], json!({"index": 0, "name": "write", "arguments": {"n": 1}}));
        }
        assert_eq!(
            (joined(&lines, "/message/content"), &whole["message"]["content"]),
            ("".into(), &json!(""))
        );
        assert_eq!(
            (&lines[lines.len() - 1]["done_reason"], &whole["done_reason"]),
            (&json!("length"), &json!("length"))
        );
    }
}
