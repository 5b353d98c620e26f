//! Requests and responses, compared with recorded streams.

use chaski::text::AnswerEvent;
use chaski::{Finish, Grammar};
use serde_json::{Value, json};

use super::ask;
use crate::ask::Prompt;
use crate::error::{ApiError, Kind};
use crate::testing::{self, call, content, events, outcome, reasoning, stats, told};

fn body(more: Value) -> Value {
    let mut body = json!({"model": "m", "input": "Hello!"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn messages(more: Value) -> Value {
    match testing::ask(ask, &body(more)).0.prompt {
        Prompt::Chat { messages, .. } => serde_json::to_value(messages).unwrap(),
        Prompt::Texts(_) => panic!("a conversation"),
    }
}

#[test]
fn wrong_fields_are_named() {
    let part = |part: Value| json!({"input": [{"role": "user", "content": [part]}]});
    for (more, path) in [
        (json!({"input": null}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": [{"role": "robot", "content": ""}]}), "input[0].role"),
        (json!({"input": [{"type": "item_reference", "id": "msg_1"}]}), "input[0].type"),
        (json!({"input": [{"type": "function_call", "name": "a", "arguments": "{}"}]}), "input[0].call_id"),
        (json!({"input": [{"type": "function_call_output", "call_id": "c"}]}), "input[0].output"),
        (part(json!({"type": "input_image", "image_url": ""})), "input[0].content[0].type"),
        (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
        (json!({"background": true}), "background"),
        (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].name"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"max_output_tokens": 0}), "max_output_tokens"),
        (json!({"reasoning": {"effort": "endless"}}), "reasoning.effort"),
        (json!({"text": {"format": {"type": "json_schema"}}}), "text.format.schema"),
        (json!({"truncation": "middle"}), "truncation"),
        (json!({"top_logprobs": 2}), "top_logprobs"),
        (json!({"metadata": ["a"]}), "metadata"),
        (json!({"store": "yes"}), "store"),
    ] {
        let error = testing::refusal(ask, &body(more.clone()));
        assert_eq!(error.param.as_deref(), Some(path), "{more}");
        assert_eq!(error.openai(false)["error"]["param"], path);
    }
}

#[test]
fn items_of_the_assistant_that_follow_each_other_are_one_message() {
    let found = messages(json!({
        "instructions": "Be kind.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Lima?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [],
             "content": [{"type": "reasoning_text", "text": "Look."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Lima\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "Fog."},
            {"role": "developer", "content": "Short."},
        ],
    }));
    let expected = json!([
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Lima?"},
        {"role": "assistant", "content": "Let me look.", "reasoning_content": "Look.", "tool_calls": [
            {"id": "call_1", "type": "function",
             "function": {"name": "weather", "arguments": "{\"city\":\"Lima\"}"}},
        ]},
        {"role": "tool", "content": "Fog.", "tool_call_id": "call_1", "name": "weather"},
        {"role": "developer", "content": "Short."},
    ]);
    assert_eq!(found, expected);
}

#[test]
fn options_reach_the_template_and_the_sampler() {
    let tool = json!({"type": "function", "name": "a", "parameters": {"type": "object"}, "strict": true});
    let (ask, _) = testing::ask(
        ask,
        &body(json!({
            "tools": [tool], "reasoning": {"effort": "none"}, "max_output_tokens": 9, "truncation": "auto",
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "integer"}}},
            "store": true, "unknown": 1,
        })),
    );
    let Prompt::Chat { template, .. } = &ask.prompt else { panic!("a conversation") };
    assert_eq!(template.enable_thinking, Some(false));
    let function = json!({"name": "a", "parameters": {"type": "object"}, "strict": true});
    assert_eq!(template.tools, [json!({"type": "function", "function": function})]);
    assert!(matches!(&ask.options.grammar, Some(Grammar::JsonSchema(_))));
    assert_eq!((ask.options.max_tokens, ask.truncate), (Some(9), true));
}

/// Reasoning, text and a call.
fn parts() -> Vec<AnswerEvent> {
    let mut parts = vec![reasoning("Two."), content("Let me look.")];
    parts.extend(call("get_weather", &["{\"city\":", "\"Lima\"}"]));
    parts
}

#[test]
fn a_stream_of_reasoning_text_and_a_call_is_as_clients_expect_it() {
    let mut expected = testing::contract_events("openai-responses-reasoning-text-tool.json");
    let (_, mut writer) = testing::ask(ask, &body(json!({"stream": true})));
    let events = events(&parts(), Finish::Stop, stats(4, 16, 30));
    let found = testing::stream(&mut *writer, &told("resp_", 20), &events);
    // Each part of the reasoning is one token here.
    let last = expected.last_mut().unwrap();
    last["response"]["usage"]["output_tokens_details"]["reasoning_tokens"] = 1.into();
    testing::assert_covers(&found.into(), &expected.into(), "");
}

#[test]
fn streams_have_llama_servers_telemetry_if_they_ask_for_it() {
    let found = |more: Value| {
        let (_, mut writer) = testing::ask(ask, &body(more));
        let events = events(&parts(), Finish::Stop, stats(4, 16, 30));
        testing::stream(&mut *writer, &told("resp_", 20), &events)
    };
    let plain = found(json!({"stream": true}));
    let has = |event: &Value, name: &str| event.get(name).is_some();
    assert!(!plain.iter().any(|event| has(event, "timings") || has(event, "prompt_progress")));
    let asked = found(json!({"stream": true, "timings_per_token": true, "return_progress": true}));
    // One at the start, and one when the prompt has run.
    assert_eq!(asked.len(), plain.len() + 1);
    let progress = asked.iter().filter(|event| has(event, "prompt_progress"));
    let processed = progress.map(|event| {
        assert_eq!(
            (&event["type"], &event["response"]["id"]),
            (&json!("response.in_progress"), &json!("resp_1"))
        );
        assert_eq!(
            (&event["prompt_progress"]["total"], &event["prompt_progress"]["cache"]),
            (&json!(20), &json!(16))
        );
        event["prompt_progress"]["processed"].as_u64()
    });
    assert_eq!(processed.collect::<Vec<_>>(), [Some(16), Some(20)]);
    for (i, event) in asked.iter().enumerate() {
        let name = event["type"].as_str().unwrap();
        let has_times =
            name.ends_with(".delta") || name.ends_with(".completed") || has(event, "prompt_progress");
        assert_eq!(event["timings"]["predicted_per_second"].is_number(), has_times, "{event}");
        assert_eq!(event["sequence_number"], i);
    }
}

#[test]
fn a_whole_response_has_the_same_items() {
    let (_, mut writer) = testing::ask(ask, &body(json!({"temperature": 0.5, "metadata": {"a": "b"}})));
    let events = events(&parts(), Finish::Stop, stats(4, 16, 30));
    let whole = writer.whole(&told("resp_", 20), &[outcome(&events)]);
    let streamed = testing::stream(&mut *writer, &told("resp_", 20), &events);
    testing::assert_covers(&whole, &streamed.last().unwrap()["response"], "");
    assert_eq!((&whole["temperature"], &whole["top_p"]), (&json!(0.5), &json!(0.95)));
    assert_eq!(whole["metadata"], json!({"a": "b"}));
    let prefixes = ["rs_", "msg_", "fc_"];
    for (item, prefix) in whole["output"].as_array().unwrap().iter().zip(prefixes) {
        assert!(item["id"].as_str().unwrap().starts_with(prefix), "{item}");
    }
}

#[test]
fn a_response_that_was_cut_is_incomplete() {
    let (_, mut writer) = testing::ask(ask, &body(json!({})));
    let events = events(&[content("Once")], Finish::Length, stats(4, 0, 1));
    let whole = writer.whole(&told("resp_", 4), &[outcome(&events)]);
    let streamed = testing::stream(&mut *writer, &told("resp_", 4), &events);
    let last = streamed.last().unwrap();
    assert_eq!(last["type"], "response.incomplete");
    for response in [&whole, &last["response"]] {
        assert_eq!(response["status"], "incomplete");
        assert_eq!(response["incomplete_details"], json!({"reason": "max_output_tokens"}));
        assert_eq!(response["output"][0]["status"], "incomplete");
    }
}

#[test]
fn a_stream_that_fails_ends_with_a_failed_response() {
    let (_, mut writer) = testing::ask(ask, &body(json!({})));
    let told = told("resp_", 4);
    let mut events = events(&[content("Once")], Finish::Stop, stats(4, 0, 1));
    events.pop();
    let n_event = testing::stream(&mut *writer, &told, &events).len();
    let error = ApiError::new(Kind::DeviceLost, "the device was lost");
    let frames = writer.failed(&told, &error).unwrap();
    let Some(crate::dialect::Frame::Event("response.failed", data)) = frames.last() else {
        panic!("{frames:?}")
    };
    assert_eq!(data["sequence_number"], n_event + frames.len() - 1);
    assert_eq!(data["response"]["status"], "failed");
    let error = json!({"code": "server_error", "message": "the device was lost"});
    assert_eq!(data["response"]["error"], error);
    assert_eq!(data["response"]["output"][0]["content"][0]["text"], "Once");
}
