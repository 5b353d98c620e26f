//! Requests and answers, compared with recorded streams.

use chaski::text::{AnswerEvent, Content};
use chaski::{Finish, Grammar, Message};
use serde_json::{Value, json};

use super::messages::ask;
use crate::ask::Prompt;
use crate::testing::{self, call, content, events, outcome, reasoning, stats, told};

/// A body with these fields besides those that must be there.
fn body(more: Value) -> Value {
    let mut body =
        json!({"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Hello!"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn messages(more: Value) -> Vec<Message> {
    match testing::ask(ask, &body(more)).0.prompt {
        Prompt::Chat { messages, .. } => messages,
        Prompt::Texts(_) => panic!("a conversation"),
    }
}

#[test]
fn wrong_fields_are_named_in_the_shape_of_the_dialect() {
    let turn = |block: Value| json!({"messages": [{"role": "user", "content": [block]}]});
    let tool = json!({"name": "a", "input_schema": {"type": "object"}});
    for (more, path) in [
        (json!({"max_tokens": null}), "max_tokens"),
        (json!({"max_tokens": 0}), "max_tokens"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": [{"role": "robot", "content": ""}]}), "messages[0].role"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (turn(json!({"type": "image", "source": {}})), "messages[0].content[0].type"),
        (turn(json!({"type": "text"})), "messages[0].content[0].text"),
        (turn(json!({"type": "tool_result"})), "messages[0].content[0].tool_use_id"),
        (
            turn(json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]})),
            "messages[0].content[0].content[0].type",
        ),
        (json!({"system": 3}), "system"),
        (json!({"stop_sequences": [""]}), "stop_sequences"),
        (json!({"temperature": -1}), "temperature"),
        (json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}), "tools[0].type"),
        (json!({"tools": [{"name": "a"}]}), "tools[0].input_schema"),
        (json!({"tools": [tool], "tool_choice": {"type": "tool", "name": "b"}}), "tool_choice.name"),
        (json!({"tool_choice": {"type": "any"}}), "tool_choice"),
        (json!({"thinking": {"type": "deep"}}), "thinking.type"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 64}}), "thinking.budget_tokens"),
        (json!({"output_config": {"format": {"type": "yaml"}}}), "output_config.format.type"),
    ] {
        let error = testing::refusal(ask, &body(more.clone()));
        assert_eq!(error.param.as_deref(), Some(path), "{more}");
        let told = error.anthropic("req_1");
        assert_eq!(
            (&told["type"], &told["error"]["type"]),
            (&json!("error"), &json!("invalid_request_error"))
        );
        assert!(told["error"]["message"].as_str().unwrap().contains(path), "{told}");
    }
}

#[test]
fn blocks_of_the_history_become_messages_of_the_template() {
    let found = messages(json!({
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Lima?"}, {"type": "text", "text": "Now."}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Look.", "signature": "s"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Lima"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true,
                 "content": [{"type": "text", "text": "Fog."}]},
                {"type": "text", "text": "And?"},
            ]},
        ],
    }));
    let expected = json!([
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Lima?\nNow."},
        {"role": "assistant", "content": "Let me look.", "reasoning_content": "Look.", "tool_calls": [
            {"id": "toolu_1", "type": "function",
             "function": {"name": "weather", "arguments": "{\"city\":\"Lima\"}"}},
        ]},
        {"role": "tool", "content": "Fog.", "tool_call_id": "toolu_1", "name": "weather", "is_error": true},
        {"role": "user", "content": "And?"},
    ]);
    assert_eq!(serde_json::to_value(found).unwrap(), expected);
}

#[test]
fn a_call_alone_has_no_content() {
    let call = json!({"type": "tool_use", "id": "t", "name": "now", "input": {}});
    let found = messages(json!({"messages": [{"role": "assistant", "content": [call]}]}));
    assert_eq!(found[0].content, Some(Content::Null));
}

#[test]
fn options_reach_the_template_and_the_sampler() {
    let tool = json!({"name": "a", "description": "A.", "input_schema": {"type": "object"}});
    let format = json!({"type": "json_schema", "schema": {"type": "integer"}});
    let (ask, _) = testing::ask(
        ask,
        &body(json!({
            "tools": [tool], "tool_choice": {"type": "auto"}, "thinking": {"type": "disabled"},
            "output_config": {"format": format}, "stop_sequences": ["x"], "temperature": 0.5, "unknown": 1,
        })),
    );
    let Prompt::Chat { template, .. } = &ask.prompt else { panic!("a conversation") };
    assert_eq!(template.enable_thinking, Some(false));
    let function = json!({"name": "a", "description": "A.", "parameters": {"type": "object"}});
    assert_eq!(template.tools, [json!({"type": "function", "function": function})]);
    assert!(matches!(&ask.options.grammar, Some(Grammar::JsonSchema(_))));
    assert_eq!((ask.options.max_tokens, ask.options.sampler.temp), (Some(64), 0.5));
    assert_eq!(ask.options.stop, ["x"]);
}

#[test]
fn no_tools_are_offered_where_none_may_be_called() {
    let tool = json!({"name": "a", "input_schema": {}});
    let (ask, _) = testing::ask(ask, &body(json!({"tools": [tool], "tool_choice": {"type": "none"}})));
    let Prompt::Chat { template, .. } = &ask.prompt else { panic!("a conversation") };
    assert!(template.tools.is_empty());
}

/// Reasoning, text and a call.
fn parts() -> Vec<AnswerEvent> {
    let mut parts = vec![reasoning("Two cities."), content("Let me look.")];
    parts.extend(call("get_weather", &["{\"city\":", "\"Lima\"}"]));
    parts
}

#[test]
fn a_stream_of_reasoning_text_and_a_call_is_as_clients_expect_it() {
    let expected = testing::contract_events("anthropic-thinking-text-tool.json");
    let (_, mut writer) = testing::ask(ask, &body(json!({"stream": true})));
    let events = events(&parts(), Finish::Stop, stats(20, 16, 30));
    let found = testing::stream(&mut *writer, &told("msg_", 36), &events);
    testing::assert_covers(&found.into(), &expected.into(), "");
}

#[test]
fn the_head_of_a_stream_that_fails_is_as_clients_expect_it() {
    let expected = testing::contract_events("anthropic-error-in-stream.json");
    let (_, mut writer) = testing::ask(ask, &body(json!({})));
    let events = events(&[], Finish::Stop, stats(20, 16, 0));
    let found = testing::stream(&mut *writer, &told("msg_", 36), &events);
    testing::assert_covers(&found[0], &expected[0], "");
    let error = crate::error::ApiError::new(crate::error::Kind::Full, "the queue is full");
    assert_eq!(error.anthropic("req_1"), expected[1]);
}

#[test]
fn a_whole_message_has_the_same_blocks() {
    let (_, mut writer) = testing::ask(ask, &body(json!({})));
    let outcome = outcome(&events(&parts(), Finish::Stop, stats(20, 16, 30)));
    let message = writer.whole(&told("msg_", 36), &[outcome]);
    let mut blocks = message["content"].clone();
    let id = blocks[2]["id"].take();
    assert!(id.as_str().unwrap().starts_with("toolu_"), "{id}");
    let expected = json!([
        {"type": "thinking", "thinking": "Two cities.", "signature": "local"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": null, "name": "get_weather", "input": {"city": "Lima"}},
    ]);
    assert_eq!(blocks, expected);
    assert_eq!((&message["stop_reason"], &message["stop_sequence"]), (&json!("tool_use"), &Value::Null));
    let usage = json!({"input_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 16,
        "output_tokens": 30});
    assert_eq!(message["usage"], usage);
}

#[test]
fn the_reason_for_the_end_has_the_words_of_the_dialect() {
    for (finish, reason, sequence) in [
        (Finish::Stop, "end_turn", None),
        (Finish::StopText, "stop_sequence", Some("named")),
        (Finish::Length, "max_tokens", None),
        (Finish::Context, "model_context_window_exceeded", None),
    ] {
        let (_, mut writer) = testing::ask(ask, &body(json!({"stop_sequences": ["fox", "named"]})));
        let mut stats = stats(4, 0, 2);
        stats.stop = sequence.map(|_| 1);
        let events = events(&[content("A")], finish, stats);
        let told = told("msg_", 4);
        let message = writer.whole(&told, &[outcome(&events)]);
        assert_eq!((&message["stop_reason"], &message["stop_sequence"]), (&json!(reason), &json!(sequence)));
        let found = testing::stream(&mut *writer, &told, &events);
        let delta = &found[found.len() - 2]["delta"];
        assert_eq!((&delta["stop_reason"], &delta["stop_sequence"]), (&json!(reason), &json!(sequence)));
    }
}

#[test]
fn a_call_that_was_cut_stays_a_call_and_is_no_reason_to_use_tools() {
    let (_, mut writer) = testing::ask(ask, &body(json!({})));
    let mut parts = vec![AnswerEvent::CallBegin { name: "a".into() }, AnswerEvent::Arguments("{\"x".into())];
    parts.push(AnswerEvent::CallEnd { is_valid: false, written: "<tool_call>{\"x".into() });
    let events = events(&parts, Finish::Length, stats(4, 0, 3));
    let found = testing::stream(&mut *writer, &told("msg_", 4), &events);
    let names: Vec<&str> = found.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names[names.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    assert_eq!(found[found.len() - 2]["delta"]["stop_reason"], "max_tokens");
    let message = writer.whole(&told("msg_", 4), &[outcome(&events)]);
    let block = &message["content"][0];
    assert_eq!(
        (&block["type"], &block["name"], &block["input"]),
        (&json!("tool_use"), &json!("a"), &json!({}))
    );
    assert_eq!(
        (message["content"].as_array().unwrap().len(), &message["stop_reason"]),
        (1, &json!("max_tokens"))
    );
}

#[test]
fn a_full_context_is_told_apart_from_the_limit() {
    let body = json!({"max_tokens": 100, "messages": [{"role": "user", "content": "A"}]});
    let (told, mut writer) = (testing::told("msg_", 500), testing::ask(ask, &body).1);
    for (n_token, reason) in [(5, "max_tokens"), (12, "model_context_window_exceeded")] {
        let stats = testing::stats(500, 0, n_token);
        let outcome = testing::outcome(&testing::events(&[testing::content("a")], Finish::Length, stats));
        assert_eq!(writer.whole(&told, &[outcome])["stop_reason"], reason);
    }
}
