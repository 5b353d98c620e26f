//! Calls that are cut at the limit: whole answers say the same as joined streams, and notation is no content.

use serde_json::{Value, json};

use crate::clients::has_time;
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

/// A tool of each dialect, whose calls are short.
fn go(parameters: &str) -> Value {
    let mut tool = json!({"name": "go", "description": "Goes."});
    tool[parameters] = json!({
        "type": "object", "properties": {"n": {"const": 1}}, "required": ["n"], "additionalProperties": false});
    tool
}

/// The texts that clients would show of an answer, whole and streamed.
fn shown(path: &str, whole: &Value, events: &[Value]) -> [String; 2] {
    let texts = |list: &Value, at: &str| joined(list.as_array().into_iter().flatten(), at);
    let whole = match path {
        "/v1/chat/completions" => texts(&whole["choices"], "/message/content"),
        "/v1/messages" => texts(&whole["content"], "/text"),
        "/v1/responses" => texts(&whole["output"], "/content/0/text"),
        _ => joined([whole], "/message/content"),
    };
    let is_text = |event: &&Value| event["type"] == "response.output_text.delta";
    let streamed = match path {
        "/v1/chat/completions" => joined(events, "/choices/0/delta/content"),
        "/v1/messages" => joined(events, "/delta/text"),
        "/v1/responses" => joined(events.iter().filter(is_text), "/delta"),
        _ => joined(events, "/message/content"),
    };
    [whole, streamed]
}

/// A body for each dialect: a call that is forced, and more fields of the answer.
fn forced(path: &str, limit: usize) -> Value {
    let function = json!({"type": "function", "function": go("parameters")});
    match path {
        "/v1/chat/completions" => asking(json!({
            "max_tokens": limit, "tools": [function], "tool_choice": "required", "parallel_tool_calls": true})),
        "/v1/messages" => asking(json!({
            "max_tokens": limit, "tools": [go("input_schema")], "tool_choice": {"type": "any"}})),
        "/v1/responses" => {
            let mut tool = go("parameters");
            tool["type"] = "function".into();
            json!({"input": "Hi", "temperature": 0, "max_output_tokens": limit, "tools": [tool],
                "tool_choice": "required", "parallel_tool_calls": true})
        }
        _ => asking(json!({
            "options": {"num_predict": limit, "temperature": 0}, "tools": [function], "tool_choice": "required"})),
    }
}

#[test]
fn a_call_that_is_cut_before_its_name_is_no_content() {
    // A model without notation of its own; objects between markers; markers around names; headers of messages.
    let all = ["", "<tool_call>", "<|open|><|close|><|sep|>", "<|channel|><|message|><|call|>"];
    let (all, limits) =
        if has_time() { (&all[..], (1..24).step_by(2)) } else { (&all[..2], (3..18).step_by(7)) };
    for signs in all {
        let mut setup = Setup::built_in(4);
        if !signs.is_empty() {
            let messages = "{% for m in messages %}{{ m.content }}{% endfor %}";
            setup.chat_template(&format!("{{# {signs} #}}{messages}"));
        }
        let running = setup.start();
        std::thread::scope(|scope| {
            for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat"] {
                let (running, limits) = (&running, limits.clone());
                scope.spawn(move || {
                    for limit in limits {
                        let (whole, events) = both(running, path, &forced(path, limit));
                        let empty = [String::new(), String::new()];
                        assert_eq!(shown(path, &whole, &events), empty, "{path}, {limit}, {signs}: {whole}");
                    }
                });
            }
        });
    }
}

#[test]
fn a_call_that_a_model_begins_is_no_content_before_its_name() {
    let mut setup = Setup::built_in(1);
    setup.chat_template("{% for m in messages %}{{ m.content }}{% endfor %}{# <tool_call> #}");
    let running = setup.start();
    // The model has the choice; a constraint of the content stands for its wish.
    let function = json!({"type": "function", "function": go("parameters")});
    let said = "Well.\n<tool_call>\n{\"name\": \"go\", \"arguments\": {\"n\": 1}}\n</tool_call>";
    let more = json!({"tools": [function], "guided_choice": [said]});
    let mut n_call = 0;
    for limit in (1..60).step_by(if has_time() { 2 } else { 7 }) {
        let mut body = asking(more.clone());
        body["max_tokens"] = limit.into();
        let (whole, events) = both(&running, "/v1/chat/completions", &body);
        let [whole_text, streamed] = shown("/v1/chat/completions", &whole, &events);
        // The marker has several tokens in this vocabulary; what is less than it may be text.
        assert!("Well.\n<tool_call".starts_with(&whole_text), "{limit}: {whole}");
        assert_eq!(whole_text, streamed, "{limit}");
        n_call += usize::from(whole["choices"][0]["message"]["tool_calls"].is_array());
    }
    assert!(n_call > 1, "{n_call}");
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
