//! Requests and answers, compared with recorded lines.

use std::time::Duration;

use chaski::text::AnswerEvent;
use chaski::{Finish, Grammar, Stats};
use serde_json::{Value, json};

use super::{Only, chat, generate, keep_alive, models, pulls};
use crate::ask::{Ask, Part, Prompt};
use crate::dialect::ReadAsk;
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::models::{KeepAlive, Listed, PullEvent};
use crate::pulls::Progress;
use crate::testing::{self, assert_covers, call, content, events, outcome, reasoning, told};

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn chat_body(more: Value) -> Value {
    with(json!({"model": "m", "messages": [{"role": "user", "content": "Hello!"}]}), &more)
}

fn generate_body(more: Value) -> Value {
    with(json!({"model": "m", "prompt": "Once"}), &more)
}

#[test]
fn wrong_fields_are_named() {
    let turn = |turn: Value| json!({"messages": [turn]});
    for (more, path) in [
        (turn(json!({"content": "x"})), "messages[0].role"),
        (turn(json!({"role": "robot"})), "messages[0].role"),
        (turn(json!({"role": "user", "content": ["x"]})), "messages[0].content"),
        (turn(json!({"role": "user", "images": ["aGk="]})), "messages[0].images"),
        (turn(json!({"role": "assistant", "tool_calls": [{}]})), "messages[0].tool_calls[0].function"),
        (
            turn(
                json!({"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]}),
            ),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (json!({"options": {"num_ctx": 1024}}), "options.num_ctx"),
        (json!({"options": {"temperature": "hot"}}), "options.temperature"),
        (json!({"options": {"stop": [""]}}), "options.stop"),
        (json!({"format": "yaml"}), "format"),
        (json!({"think": "hard"}), "think"),
        (json!({"tools": [{"type": "function", "function": {}}]}), "tools[0].function.name"),
        (json!({"stream": "yes"}), "stream"),
    ] {
        let error = testing::refusal(chat::ask, &chat_body(more.clone()));
        assert_eq!(error.param.as_deref(), Some(path), "{more}");
        assert!(error.ollama()["error"].as_str().unwrap().contains(path), "{}", error.message);
    }
    for (more, path, kind) in [
        (json!({"prompt": 3}), "prompt", Kind::Invalid),
        (json!({"template": "{{ .Prompt }}"}), "template", Kind::Invalid),
        (json!({"images": ["aGk="]}), "images", Kind::Invalid),
        (json!({"context": ["x"]}), "context", Kind::Invalid),
        (json!({"suffix": "end"}), "suffix", Kind::Unsupported),
    ] {
        let error = testing::refusal(generate::ask, &generate_body(more.clone()));
        assert_eq!((error.param.as_deref(), error.kind), (Some(path), kind), "{more}");
    }
}

#[test]
fn results_find_their_calls_by_the_name_of_the_tool() {
    let body = chat_body(json!({"messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": "", "thinking": "Two.", "tool_calls": [
            {"function": {"name": "weather", "arguments": {"city": "Lima"}}},
            {"id": "call_b", "function": {"name": "time", "arguments": {}}},
        ]},
        {"role": "tool", "tool_name": "time", "content": "Noon."},
        {"role": "tool", "content": "Fog."},
    ]}));
    let Prompt::Chat { messages, .. } = testing::ask(chat::ask, &body).0.prompt else {
        panic!("a conversation")
    };
    let made = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls = json!([made("call00000", "weather", "{\"city\":\"Lima\"}"), made("call_b", "time", "{}")]);
    let expected = json!([
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": null, "reasoning_content": "Two.", "tool_calls": calls},
        {"role": "tool", "content": "Noon.", "tool_call_id": "call_b", "name": "time"},
        {"role": "tool", "content": "Fog.", "tool_call_id": "call00000", "name": "weather"},
    ]);
    assert_eq!(serde_json::to_value(messages).unwrap(), expected);
}

#[test]
fn options_reach_the_template_and_the_sampler() {
    let options = json!({"temperature": 0.5, "num_predict": 9, "num_ctx": 512, "num_keep": 4, "stop": "x",
        "num_gpu": 99});
    let (ask, _) = testing::ask(
        chat::ask,
        &chat_body(json!({"options": options, "think": "low", "format": {"type": "integer"}, "shift": true,
            "truncate": true, "logprobs": true, "keep_alive": "5m"})),
    );
    let Prompt::Chat { template, .. } = &ask.prompt else { panic!("a conversation") };
    assert_eq!((template.enable_thinking, &template.extra["reasoning_effort"]), (Some(true), &json!("low")));
    let Ask { stream, truncate, options, .. } = &ask;
    assert_eq!((*stream, *truncate), (true, true), "streams are the default");
    assert_eq!((options.max_tokens, options.sampler.temp, options.shift), (Some(9), 0.5, Some(4)));
    assert_eq!((options.stop[0].as_str(), options.logprobs), ("x", Some(0)));
    assert!(matches!(options.grammar, Some(Grammar::JsonSchema(_))));
    for limit in [-2, -1, 0] {
        let (ask, _) =
            testing::ask(generate::ask, &generate_body(json!({"options": {"num_predict": limit}})));
        assert_eq!(ask.options.max_tokens, None);
    }
}

#[test]
fn a_prompt_goes_on_after_the_tokens_of_an_earlier_one() {
    let (ask, _) =
        testing::ask(generate::ask, &generate_body(json!({"context": [1, 2], "system": "Be kind."})));
    let Prompt::Chat { messages, .. } = &ask.prompt else { panic!("a conversation") };
    let roles: Vec<&str> = messages.iter().map(|message| message.role.as_str()).collect();
    assert_eq!((roles, ask.before), (vec!["system", "user"], vec![1, 2]));
    let (ask, _) = testing::ask(generate::ask, &generate_body(json!({"context": [1, 2], "raw": true})));
    let Prompt::Texts(texts) = &ask.prompt else { panic!("a plain text") };
    assert_eq!(texts[0], [Part::Tokens(vec![1, 2]), Part::Text("Once".into())]);
}

#[test]
fn requests_for_nothing_load_or_free_the_model() {
    assert_eq!(chat::only(&json!({"model": "m", "messages": []})).unwrap(), Some(Only::Load));
    assert_eq!(generate::only(&json!({"prompt": "", "keep_alive": -1})).unwrap(), Some(Only::Load));
    assert_eq!(chat::only(&chat_body(json!({}))).unwrap(), None);
    assert_eq!(generate::only(&generate_body(json!({}))).unwrap(), None);
    for keep_alive in [json!(0), json!("0"), json!("0s")] {
        assert_eq!(generate::only(&json!({"keep_alive": keep_alive})).unwrap(), Some(Only::Unload));
    }
    let body = Only::Unload.response("m");
    assert_eq!((&body["done"], &body["done_reason"]), (&json!(true), &json!("unload")));
}

#[test]
fn times_have_units_or_are_seconds() {
    let time = |value: Value| {
        let body = json!({"keep_alive": value});
        keep_alive(&Fields::of(&body, "").unwrap()).map_err(|error| error.message)
    };
    let seconds = |n| Ok(Some(KeepAlive::For(Duration::from_secs(n))));
    assert_eq!(time(json!("5m")), seconds(300));
    assert_eq!(time(json!("1h30m")), seconds(5400));
    assert_eq!(time(json!(90)), seconds(90));
    for always in [json!(-1), json!("-1"), json!("-1m")] {
        assert_eq!(time(always), Ok(Some(KeepAlive::Always)));
    }
    assert_eq!(time(Value::Null), Ok(None));
    for wrong in [json!("soon"), json!([]), json!(true), json!(1e300)] {
        let error = time(wrong).unwrap_err();
        assert!(error.starts_with("`keep_alive` must be a time such as 5m"), "{error}");
    }
}

fn stats(n_prompt: usize, n_token: usize) -> Stats {
    let [queue, ttft, decode] = [100, 102, 4].map(Duration::from_nanos);
    Stats { queue, ttft, decode, ..testing::stats(n_prompt, 0, n_token) }
}

/// The lines of a stream, and the whole answer.
fn answers(read: ReadAsk, body: &Value, parts: &[AnswerEvent], finish: Finish) -> (Vec<Value>, Value) {
    let (events, told) = (events(parts, finish, stats(5, 3)), told("", 5));
    let whole = testing::ask(read, body).1.whole(&told, &[outcome(&events)]);
    (testing::stream(&mut *testing::ask(read, body).1, &told, &events), whole)
}

fn parts() -> Vec<AnswerEvent> {
    let mut parts = vec![reasoning("Two."), content("Let me ")];
    parts.extend(call("get_weather", &["{\"city\":", "\"Lima\"}"]));
    parts
}

#[test]
fn lines_of_reasoning_text_and_a_call_are_as_clients_expect_them() {
    let expected = testing::contract("ollama-chat-thinking-tool.json");
    let (lines, _) = answers(chat::ask, &chat_body(json!({})), &parts(), Finish::Stop);
    let last = lines.last().unwrap();
    assert_eq!((&last["prompt_eval_duration"], &last["eval_duration"]), (&json!(2), &json!(4)));
    // The time in the queue is a part of the rest.
    let nanos = |name: &str| last[name].as_u64().unwrap();
    assert_eq!(nanos("load_duration"), nanos("total_duration") - 6);
    assert!(nanos("load_duration") >= 100);
    assert_covers(&lines.into(), &expected["lines"], "");
}

#[test]
fn a_whole_answer_says_the_same() {
    let (_, whole) = answers(chat::ask, &chat_body(json!({"stream": false})), &parts(), Finish::Length);
    let calls =
        json!([{"id": "", "function": {"index": 0, "name": "get_weather", "arguments": {"city": "Lima"}}}]);
    let message = json!({"role": "assistant", "content": "Let me ", "thinking": "Two.", "tool_calls": calls});
    let expected = json!({"model": "m", "created_at": "", "message": message, "done": true,
        "done_reason": "length", "prompt_eval_count": 5, "eval_count": 3});
    assert_covers(&whole, &expected, "");
}

#[test]
fn lines_of_a_text_are_as_clients_expect_them() {
    let expected = testing::contract("ollama-generate.json");
    let (lines, whole) = answers(generate::ask, &generate_body(json!({})), &[content("Once")], Finish::Stop);
    let mut expected = expected["lines"].clone();
    // Five tokens of the prompt and one of the answer.
    expected[1]["context"] = json!([1, 1, 1, 1, 1, 1]);
    assert_covers(&lines.into(), &expected, "");
    expected[1]["response"] = "Once".into();
    assert_covers(&whole, &expected[1], "");
    let (lines, _) =
        answers(generate::ask, &generate_body(json!({"raw": true})), &[content("Once")], Finish::Stop);
    assert!(lines[1].get("context").is_none(), "a raw text is no conversation");
}

#[test]
fn a_call_that_was_cut_has_the_arguments_that_are_complete() {
    let mut parts =
        vec![AnswerEvent::CallBegin { name: "a".into() }, AnswerEvent::Arguments("{\"y\": 1, \"x".into())];
    parts.push(AnswerEvent::CallEnd { is_valid: false, written: "<tool_call>{\"x".into() });
    let (lines, whole) = answers(chat::ask, &chat_body(json!({})), &parts, Finish::Length);
    for message in [&lines[0]["message"], &whole["message"]] {
        assert_eq!(message["content"], "");
        assert_eq!(
            message["tool_calls"][0]["function"],
            json!({"index": 0, "name": "a", "arguments": {"y": 1}})
        );
    }
}

fn storyteller(n_byte: u64) -> Listed {
    let mut facts = testing::facts();
    (facts.id, facts.about.ftype, facts.about.n_byte) = ("storyteller".into(), "Q8_0".into(), n_byte);
    facts.about.template = Some("{{ messages }}".into());
    Listed::for_tests(facts, n_byte)
}

#[test]
fn models_are_described_as_clients_expect_it() {
    let tags = testing::contract("ollama-tags.json");
    assert_covers(&models::tags(&[storyteller(7325088)]), &tags["body"], "");
    let ps = testing::contract("ollama-ps.json");
    assert_covers(&models::ps(&[storyteller(9000000)]), &ps["body"], "");
    let mut show = testing::contract("ollama-show.json");
    let found = models::show(&storyteller(9000000)).unwrap();
    show["body"]["modelfile"] = found["modelfile"].clone();
    show["body"]["parameters"] = found["parameters"].clone();
    assert_covers(&found, &show["body"], "");
    let version = testing::contract("ollama-version.json");
    assert_covers(&models::version(), &version["body"], "");
}

/// The new lines after each of these states of a download.
fn told_of(states: &[Progress]) -> Vec<Value> {
    let mut lines = pulls::Lines::default();
    states.iter().flat_map(|state| lines.next(state)).collect()
}

/// A state of the file of the recorded download.
fn file(n_present: u64) -> PullEvent {
    PullEvent::File { digest: format!("sha256:{}", "0a".repeat(32)), size: Some(100), n_present }
}

#[test]
fn lines_of_a_download_are_as_clients_expect_them() {
    let mut expected = testing::contract("ollama-pull.json");
    // The recorded digest was made up.
    expected["lines"][1]["status"] = "pulling 0a0a0a0a0a0a".into();
    let mut states = vec![Progress::default(); 5];
    states[1..].iter_mut().for_each(|state| state.take(file(50)));
    states[2..].iter_mut().for_each(|state| state.take(PullEvent::Verifying));
    states[3..].iter_mut().for_each(|state| state.is_whole = true);
    states[4].ended = Some(Ok(()));
    let found = told_of(&states);
    assert_eq!(Value::from(found), expected["lines"]);
    assert_eq!(pulls::success(), expected["lines"][4]);
}

#[test]
fn a_client_that_comes_late_is_told_what_is_so() {
    let mut state = Progress { is_verifying: true, is_whole: true, ..Progress::default() };
    state.take(file(50));
    state.take(file(100));
    state.ended = Some(Err(ApiError::new(Kind::Internal, "no room")));
    let found = told_of(&[state]);
    let statuses: Vec<&str> = found.iter().filter_map(|line| line["status"].as_str()).collect();
    let expected =
        ["pulling manifest", "pulling 0a0a0a0a0a0a", "verifying sha256 digest", "writing manifest"];
    assert_eq!((&statuses[..], &found[1]["completed"]), (&expected[..], &json!(100)));
    assert_eq!(found[4], json!({"error": "no room"}));
}

#[test]
fn parameters_are_lines_of_names_and_numbers() {
    let found = models::show(&Listed::for_tests(testing::facts(), 1)).unwrap();
    let lines: Vec<Vec<&str>> =
        found["parameters"].as_str().unwrap().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[..2], [["temperature", "0.8"], ["top_k", "40"]]);
}

#[test]
fn names_may_have_the_default_tag() {
    let offer = storyteller(1).offer;
    assert!(offer.is_called("storyteller") && offer.is_called("storyteller:latest"));
    assert!(!offer.is_called("storyteller:other"));
}
