//! Wishes of clients for answers that run, and of operators for the cache.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use chaski_server::{Key, Level};
use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

/// A model whose answers begin in the midst of reasoning.
fn setup() -> Setup {
    let mut setup = Setup::built_in(2);
    setup.chat_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
         {% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
    );
    setup
}

fn control(running: &Running, key: &str, id: &str, action: &str) -> Answer {
    let headers = json!({"authorization": format!("Bearer {key}")});
    let body = json!({"id": id, "action": action});
    running.send(
        &json!({"method": "POST", "path": "/v1/chat/completions/control", "headers": headers, "body": body}),
    )
}

/// The data of a stream.
struct Chunks(BufReader<TcpStream>);

impl Chunks {
    fn of(running: &Running, body: &Value) -> Chunks {
        let mut stream = TcpStream::connect(running.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let body = body.to_string();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer one\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        Chunks(BufReader::new(stream))
    }
}

impl Iterator for Chunks {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream broke");
            let Some(data) = line.trim().strip_prefix("data: ") else { continue };
            return (data != "[DONE]").then(|| serde_json::from_str(data).unwrap());
        }
    }
}

#[test]
fn a_client_ends_the_reasoning_of_its_answer() {
    let mut setup = setup();
    setup.config.keys = vec![Key::new("one", "one"), Key::new("two", "two").level(Level::Admin)];
    let running = setup.start();
    for more in [
        json!({}),
        json!({"response_format": {"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}}}}),
    ] {
        let mut body = json!({
            "messages": [{"role": "user", "content": "Why?"}], "max_tokens": 70, "temperature": 0,
            "ignore_eos": true, "stream": true, "n": 2,
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut chunks = Chunks::of(&running, &body);
        let is_reasoning = |chunk: &Value| chunk["choices"][0]["delta"]["reasoning_content"].is_string();
        let id = chunks.find(is_reasoning).unwrap()["id"].as_str().unwrap().to_owned();
        assert_eq!(control(&running, "two", &id, "reasoning_end").status, 404, "it is of another client");
        let wrong = control(&running, "one", &id, "stop");
        assert_eq!((wrong.status, &wrong.body["error"]["param"]), (400, &json!("action")));
        let done = control(&running, "one", &id, "reasoning_end");
        assert_eq!((done.status, &done.body), (200, &json!({"success": true})), "{}", done.text);
        let (mut texts, mut n_reasoning) = ([String::new(), String::new()], 0);
        for chunk in chunks {
            let choice = &chunk["choices"][0];
            let Some(text) = choice["delta"]["content"].as_str() else {
                n_reasoning += usize::from(is_reasoning(&chunk));
                continue;
            };
            texts[choice["index"].as_u64().unwrap() as usize].push_str(text);
        }
        assert!(n_reasoning < 100, "{n_reasoning}");
        for text in texts {
            assert!(!text.is_empty() && !text.contains("think>"), "{text:?}");
            if more["response_format"].is_object() {
                let value: Value = serde_json::from_str(&text).expect("JSON behind the reasoning");
                assert!([1, 2].iter().any(|n| value["n"] == *n), "{value}");
            }
        }
        let late = control(&running, "one", &id, "reasoning_end");
        assert_eq!((late.status, &late.body["error"]["param"]), (404, &json!("id")));
    }
}

#[test]
fn the_cache_is_emptied_for_operators() {
    let mut setup = Setup::built_in(2);
    setup.config.keys = vec![Key::new("one", "one"), Key::new("two", "two").level(Level::Admin)];
    let running = setup.start();
    let send = |key: &str, path: &str, body: Value| {
        let headers = json!({"authorization": format!("Bearer {key}")});
        running.send(&json!({"method": "POST", "path": path, "headers": headers, "body": body}))
    };
    let cached = || {
        let body = json!({"prompt": "Once upon a time there was a fox. It saw a dog.", "max_tokens": 2});
        let usage = send("one", "/v1/completions", body).body["usage"].take();
        usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached(), 0);
    assert!(cached() > 5);
    assert_eq!(send("one", "/flush_cache", Value::Null).status, 403);
    assert!(cached() > 5);
    for path in ["/flush_cache", "/flush_cache?model=golden"] {
        let flushed = send("two", path, Value::Null);
        assert_eq!((flushed.status, &flushed.body), (200, &json!({"success": true})), "{path}");
        assert_eq!(cached(), 0, "{path}");
    }
    assert_eq!(send("two", "/flush_cache?model=nobody", Value::Null).status, 404);
}
