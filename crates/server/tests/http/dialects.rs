//! Dialects on a socket: how their streams are framed, and endpoints that answer nothing.

use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

const QUESTION: &str = "Tell me a story about a fox.";

/// A conversation of one question.
fn question(more: Value) -> Value {
    let mut body = json!({"model": "golden", "messages": [{"role": "user", "content": QUESTION}]});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

/// The lines of a stream.
fn lines(answer: &Answer) -> Vec<Value> {
    answer.text.lines().map(|line| serde_json::from_str(line).expect("each line is a value")).collect()
}

/// The texts of lines in a row.
fn joined<'a>(texts: impl Iterator<Item = &'a Value>) -> String {
    texts.map(|text| text.as_str().expect("texts are strings")).collect()
}

fn kind(answer: &Answer) -> &str {
    answer.headers["content-type"].to_str().expect("types are text")
}

#[test]
fn the_stream_of_a_message_says_what_the_message_does() {
    let running = Setup::built_in(1).start();
    let body = |stream: bool| question(json!({"max_tokens": 8, "temperature": 0, "stream": stream}));
    let whole = running.post("/v1/messages", &body(false)).body;
    let answer = running.post("/v1/messages", &body(true));
    assert_eq!(kind(&answer), "text/event-stream");
    assert!(answer.events.iter().all(|(name, data)| data["type"] == **name), "{}", answer.text);
    let mut names: Vec<&str> = answer.events.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    let expected = [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names, expected);
    let deltas = answer.events.iter().filter(|(name, _)| name == "content_block_delta");
    assert_eq!(joined(deltas.map(|(_, data)| &data["delta"]["text"])), whole["content"][0]["text"]);
    let count = running.post("/v1/messages/count_tokens", &question(json!({}))).body;
    let first = &answer.events[0].1["message"]["usage"];
    for usage in [&whole["usage"], first] {
        let cached = usage["cache_read_input_tokens"].as_u64().expect("a number");
        assert_eq!(count["input_tokens"], usage["input_tokens"].as_u64().expect("a number") + cached);
    }
    assert!(first["cache_read_input_tokens"].as_u64() > Some(0), "the second has a prefix in the cache");
}

#[test]
fn a_response_cannot_be_fetched_again() {
    let running = Setup::built_in(1).start();
    let body = json!({"input": QUESTION, "max_output_tokens": 4, "temperature": 0});
    let answer = running.post("/v1/responses", &body).body;
    let count = running.post("/v1/responses/input_tokens", &body).body;
    assert_eq!(count["input_tokens"], answer["usage"]["input_tokens"]);
    let path = format!("/v1/responses/{}", answer["id"].as_str().expect("a name"));
    for method in ["GET", "DELETE"] {
        let missing = running.send(&json!({"method": method, "path": path}));
        assert_eq!((missing.status, &missing.body["error"]["type"]), (404, &json!("not_found_error")));
    }
    let body = json!({"input": QUESTION, "max_output_tokens": 4, "temperature": 0, "stream": true});
    let streamed = running.post("/v1/responses", &body);
    for (i, (name, data)) in streamed.events.iter().enumerate() {
        assert_eq!((&data["sequence_number"], &data["type"]), (&json!(i), &json!(name)));
    }
    let deltas = streamed.events.iter().filter(|(name, _)| name == "response.output_text.delta");
    assert_eq!(joined(deltas.map(|(_, data)| &data["delta"])), answer["output"][0]["content"][0]["text"]);
}

#[test]
fn lines_say_what_whole_answers_do() {
    let running = Setup::built_in(1).start();
    let options = json!({"temperature": 0, "num_predict": 8});
    for (path, body, at) in [
        ("/api/chat", question(json!({"options": options})), "/message/content"),
        ("/api/generate", json!({"model": "golden", "prompt": QUESTION, "options": options}), "/response"),
    ] {
        let streamed = running.post(path, &body);
        assert_eq!(kind(&streamed), "application/x-ndjson");
        let mut whole = body.clone();
        whole["stream"] = false.into();
        let whole = running.post(path, &whole).body;
        let lines = lines(&streamed);
        let text = |line: &Value| line.pointer(at).cloned().expect("lines have texts");
        let texts: Vec<Value> = lines.iter().map(text).collect();
        assert_eq!(joined(texts.iter()), text(&whole), "{path}");
        let last = lines.last().expect("there are lines");
        for line in [last, &whole] {
            assert_eq!(
                (&line["done"], &line["done_reason"], &line["eval_count"]),
                (&true.into(), &"length".into(), &8.into())
            );
            assert!(line["total_duration"].as_u64() >= line["eval_duration"].as_u64(), "{line}");
        }
        assert_eq!(last["context"], whole["context"]);
        assert_eq!(last["context"].is_null(), path == "/api/chat");
    }
}

#[test]
fn a_context_goes_on_where_it_ended() {
    let running = Setup::built_in(1).start();
    let ask = |more: Value| {
        let mut body =
            json!({"model": "golden", "stream": false, "options": {"temperature": 0, "num_predict": 4}});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        running.post("/api/generate", &body).body
    };
    let first = ask(json!({"prompt": QUESTION}));
    let context = first["context"].as_array().expect("a list").len();
    assert_eq!(Some(context as u64), first["prompt_eval_count"].as_u64().map(|n| n + 4));
    let alone = ask(json!({"prompt": "Go on."}))["prompt_eval_count"].as_u64().expect("a number");
    let second = ask(json!({"prompt": "Go on.", "context": first["context"]}));
    let found = second["prompt_eval_count"].as_u64().expect("a number");
    // The text begins once.
    assert!((context as u64..=context as u64 + alone).contains(&found), "{context} + {alone}: {found}");
}

/// Requests without an answer, and what is said to them.
fn said(running: &Running, method: &str, path: &str, body: Value) -> (u16, Value) {
    let answer = running.send(&json!({"method": method, "path": path, "body": body}));
    (answer.status, answer.body)
}

#[test]
fn clients_of_ollama_find_what_they_look_for() {
    let running = Setup::built_in(1).start();
    assert_eq!(running.get("/").text, "Ollama is running");
    assert_eq!(running.send(&json!({"method": "HEAD", "path": "/"})).status, 200);
    assert!(running.get("/api/version").body["version"].is_string());
    let tags = running.get("/api/tags").body;
    let name = &tags["models"][0]["name"];
    assert_eq!(*name, "golden:latest");
    assert_eq!(running.get("/api/ps").body["models"][0]["name"], *name);
    let (status, show) = said(&running, "POST", "/api/show", json!({"model": name}));
    assert_eq!((status, &show["model_info"]["general.architecture"]), (200, &json!("llama")));
    let (status, loaded) = said(&running, "POST", "/api/chat", json!({"model": name, "messages": []}));
    assert_eq!((status, &loaded["done_reason"]), (200, &json!("load")));
    let (status, loaded) = said(&running, "POST", "/api/generate", json!({"model": name}));
    assert_eq!((status, &loaded["done_reason"]), (200, &json!("load")));
    for (method, path) in [
        ("POST", "/api/create"),
        ("POST", "/api/push"),
        ("HEAD", "/api/blobs/sha256:00"),
        ("POST", "/api/blobs/sha256:00"),
    ] {
        let (status, body) = said(&running, method, path, json!({}));
        assert_eq!(status, 501, "{method} {path}");
        let message = if path.starts_with("/api") { &body["error"] } else { &body["error"]["message"] };
        assert!(method == "HEAD" || message.is_string(), "{path}: {body}");
    }
}

#[test]
fn errors_have_the_shape_of_their_dialect() {
    let running = Setup::built_in(1).start();
    let refused = running.post("/v1/messages", &question(json!({})));
    assert_eq!(refused.body["request_id"], refused.headers["request-id"].to_str().expect("names are text"));
    let (status, body) = (refused.status, refused.body);
    assert_eq!(
        (status, &body["type"], &body["error"]["type"]),
        (400, &json!("error"), &json!("invalid_request_error"))
    );
    let (status, body) = said(&running, "POST", "/api/chat", question(json!({"think": 3})));
    assert_eq!((status, body.as_object().map(|body| body.len())), (400, Some(1)), "{body}");
    let long = "fox ".repeat(2000);
    let (status, body) = said(&running, "POST", "/api/generate", json!({"model": "golden", "prompt": long}));
    assert_eq!(status, 400);
    assert!(body["error"].as_str().is_some_and(|text| text.contains("maximum")), "{body}");
    let (status, body) =
        said(&running, "POST", "/v1/responses", json!({"input": "Hi", "previous_response_id": "resp_1"}));
    assert_eq!((status, &body["error"]["param"]), (400, &json!("previous_response_id")));
}

#[test]
fn prompts_that_no_context_holds_are_refused_before_they_are_tokenized() {
    let mut running = Setup::built_in(1).start();
    let text = "a".repeat(40_000);
    let message = json!([{"role": "user", "content": text}]);
    let opened = json!([{"role": "user", "content": text}, {"role": "assistant", "content": "Well"}]);
    for (path, body) in [
        ("/completion", json!({"prompt": text})),
        ("/v1/completions", json!({"prompt": ["a", text]})),
        ("/v1/embeddings", json!({"input": ["a", text]})),
        ("/v1/chat/completions", json!({"messages": message})),
        ("/v1/chat/completions", json!({"messages": opened, "add_generation_prompt": false})),
        ("/v1/responses", json!({"input": text})),
        ("/v1/responses", json!({"input": text, "truncation": "auto"})),
        ("/v1/messages", json!({"model": "golden", "messages": message, "max_tokens": 8})),
        ("/api/generate", json!({"model": "golden", "prompt": text, "raw": true})),
    ] {
        let answer = running.post(path, &body);
        let said =
            answer.body["error"]["message"].as_str().or(answer.body["error"].as_str()).unwrap_or_default();
        assert!(
            answer.status == 400 && said.contains("prompt is too long: at least "),
            "{path}: {}",
            answer.body
        );
    }
    // Whoever asks for a number gets that of all tokens.
    let n = |path, body: Value| running.post(path, &body).body;
    let counted = n("/tokenize", json!({"content": text}))["tokens"].as_array().map(Vec::len);
    assert!(counted >= Some(20_000), "{counted:?}");
    let message = n("/v1/messages/count_tokens", json!({"model": "golden", "messages": message}));
    assert!(message["input_tokens"].as_u64() > counted.map(|n| n as u64), "{message}");
    running.stop();
}

#[test]
fn echoed_prompts_have_the_log_probabilities_of_their_tokens() {
    let running = Setup::built_in(2).start();
    let text = "Once upon a time";
    let body = |n: u32, stream: bool| {
        json!({
            "prompt": text, "echo": true, "logprobs": 2, "max_tokens": n, "temperature": 0, "stream": stream,
        })
    };
    let ids = running.post("/tokenize", &json!({"content": text, "add_special": true})).body["tokens"].take();
    let ids = ids.as_array().expect("tokens");
    let alone = running.post("/v1/completions", &body(0, false)).body["choices"][0].take();
    assert_eq!(alone["text"], text);
    let found = &alone["logprobs"];
    for name in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
        assert_eq!(found[name].as_array().map(Vec::len), Some(ids.len()), "{name}: {found}");
    }
    assert_eq!((&found["token_logprobs"][0], &found["top_logprobs"][0]), (&Value::Null, &Value::Null));
    assert_eq!(found["text_offset"], json!([0, 0, 4, 9, 11]));
    // By hand: a large bias chooses the token, whose log probability is that without it.
    for at in 1..ids.len() {
        let bias = json!({ ids[at].to_string(): 100 });
        let body = json!({
            "prompt": ids[..at], "max_tokens": 1, "temperature": 0, "logit_bias": bias, "logprobs": 2,
        });
        let expected = running.post("/v1/completions", &body).body["choices"][0]["logprobs"].take();
        let close =
            |a: &Value, b: &Value| (a.as_f64().unwrap_or(9.0) - b.as_f64().unwrap_or(-9.0)).abs() < 1e-4;
        assert!(close(&found["token_logprobs"][at], &expected["token_logprobs"][0]), "{found}, {expected}");
        let (top, expected) = (found["top_logprobs"][at].as_object(), &expected["top_logprobs"][0]);
        let top = top.expect("tokens");
        assert!(top.len() == 2 && top.iter().all(|(name, value)| close(value, &expected[name])), "{found}");
    }
    let whole = running.post("/v1/completions", &body(4, false)).body["choices"][0]["logprobs"].take();
    assert_eq!(whole["tokens"].as_array().map(Vec::len), Some(ids.len() + 4));
    assert_eq!(whole["text_offset"][ids.len()], text.len());
    let stream = running.post("/v1/completions", &body(4, true));
    let chunks = stream.events.iter().map(|(_, chunk)| &chunk["choices"][0]["logprobs"]);
    let of = |name: &str| -> Vec<Value> {
        chunks.clone().flat_map(|lists| lists[name].as_array().cloned().unwrap_or_default()).collect()
    };
    for name in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
        assert_eq!(json!(of(name)), whole[name], "{name}");
    }
}

#[test]
fn each_chunk_can_have_the_usage() {
    let running = Setup::built_in(1).start();
    for (path, more) in [
        ("/v1/completions", json!({"prompt": "Once"})),
        ("/v1/chat/completions", json!({"messages": [{"role": "user", "content": "Hi"}]})),
    ] {
        let mut body = json!({"max_tokens": 3, "stream": true, "ignore_eos": true,
            "stream_options": {"include_usage": true, "continuous_usage_stats": true}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let events = running.post(path, &body).events;
        let counts: Vec<u64> =
            events.iter().map(|(_, event)| event["usage"]["completion_tokens"].as_u64().unwrap()).collect();
        assert!(
            counts.is_sorted() && counts.first() < counts.last() && counts.last() == Some(&3),
            "{path}: {counts:?}"
        );
    }
}

#[test]
fn ids_of_tokens_are_told_to_those_who_ask() {
    let running = Setup::built_in(1).start();
    let prompt = json!({"prompt": "Once", "add_special_tokens": true});
    let expected = running.post("/tokenize", &prompt).body["tokens"].clone();
    let mut body = json!({"prompt": ["Once", "A fox"], "max_tokens": 3, "ignore_eos": true, "temperature": 0, "return_token_ids": true});
    let whole = running.post("/v1/completions", &body).body["choices"].clone();
    assert_eq!(whole[0]["prompt_token_ids"], expected);
    assert_ne!(whole[1]["prompt_token_ids"], expected);
    body["stream"] = true.into();
    let events = running.post("/v1/completions", &body).events;
    let of = |index: u64, name: &str| -> Vec<Value> {
        let choices =
            events.iter().map(|(_, event)| &event["choices"][0]).filter(|choice| choice["index"] == index);
        choices.flat_map(|choice| choice[name].as_array().cloned().unwrap_or_default()).collect()
    };
    for index in [0, 1] {
        for name in ["token_ids", "prompt_token_ids"] {
            assert_eq!(Value::from(of(index, name)), whole[index as usize][name], "{index} {name}");
        }
        assert_eq!(of(index, "token_ids").len(), 3);
    }

    let body = question(
        json!({"max_tokens": 3, "ignore_eos": true, "temperature": 0, "n": 2, "return_token_ids": true}),
    );
    let whole = running.post("/v1/chat/completions", &body).body;
    let rendered = running.post("/v1/chat/completions/render", &body).body["token_ids"].clone();
    assert_eq!(
        (&whole["prompt_token_ids"], whole["choices"][1]["token_ids"].as_array().unwrap().len()),
        (&rendered, 3)
    );
    let mut streamed = body.clone();
    streamed["stream"] = true.into();
    let events = running.post("/v1/chat/completions", &streamed).events;
    let prompts: Vec<&Value> = events.iter().filter_map(|(_, event)| event.get("prompt_token_ids")).collect();
    assert!(prompts == [&rendered] && events[0].1["prompt_token_ids"] == rendered, "{prompts:?}");
    let text = running.post("/v1/completions", &json!({"prompt": "Once", "max_tokens": 1})).text;
    assert!(!text.contains("token_ids"), "{text}");
}
