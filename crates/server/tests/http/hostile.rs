//! Requests that mean harm: each gets an error of its own, and the server goes on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::{Running, Setup};

fn raw(running: &Running, body: &str) -> (u16, Value) {
    let answer = running.send(&json!({"method": "POST", "path": "/v1/chat/completions", "raw_body": body}));
    (answer.status, answer.body)
}

#[test]
fn bodies_that_mean_harm_are_refused() {
    let running = Setup::built_in(1).start();
    let chat = |message: &str| format!("{{\"messages\": [{message}], \"max_tokens\": 1}}");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!("{{\"role\": \"user\", \"content\": {}1{}}}", "[".repeat(120), "]".repeat(120));
    let many = vec!["{\"role\": \"user\", \"content\": \"a\"}"; 50_000].join(",");
    for (what, body) in [
        ("nothing", String::new()),
        ("half", "{\"messages\": [".into()),
        ("no object", "[]".into()),
        ("depth", deep),
        ("nested parts", chat(&nested)),
        ("a lone surrogate", chat("{\"role\": \"user\", \"content\": \"\\ud800\"}")),
        ("no text", chat("{\"role\": \"user\", \"content\": {\"a\": 1}}")),
        ("an unknown role", chat("{\"role\": \"root\", \"content\": \"a\"}")),
        ("an endless number", "{\"messages\": [], \"temperature\": 1e999}".into()),
        ("many messages", chat(&many)),
        (
            "a huge limit",
            "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"max_tokens\": 1e300}".into(),
        ),
        (
            "many stops",
            format!(
                "{{\"messages\": [{{\"role\": \"user\", \"content\": \"a\"}}], \"stop\": {}}}",
                json!(vec!["a"; 10_000])
            ),
        ),
    ] {
        let (status, body) = raw(&running, &body);
        assert_eq!(status, 400, "{what}: {body}");
        assert!(body["error"]["message"].as_str().is_some_and(|text| text.len() < 2000), "{what}: {body}");
    }
    assert_eq!(running.get("/health").status, 200);
}

#[test]
fn a_body_that_is_too_large_is_refused_unread() {
    let mut setup = Setup::built_in(1);
    setup.config.bounds.max_body = 1 << 20;
    let running = setup.start();
    let (status, body) = raw(&running, &"x".repeat((1 << 20) + 1));
    assert_eq!((status, body["error"]["code"].as_str()), (413, Some("request_too_large")));
}

#[test]
fn slow_clients_leave_room_for_others() {
    let running = Setup::built_in(1).start();
    let slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(running.address()).expect("the server listens");
            stream.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nho").expect("it takes bytes");
            stream
        })
        .collect();
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1})).status, 200);
    drop(slow);
    let mut garbage = TcpStream::connect(running.address()).expect("the server listens");
    garbage.set_read_timeout(Some(Duration::from_secs(5))).expect("sockets have timeouts");
    garbage.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n").expect("it takes bytes");
    let mut answer = Vec::new();
    // Closed with or without a word.
    let _ = garbage.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"));
    assert_eq!(running.get("/health").status, 200);
}

#[test]
fn unknown_fields_do_not_matter_and_wrong_ones_name_their_path() {
    let running = Setup::built_in(1).start();
    let ask = |extra: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1});
        for (name, value) in extra.as_object().expect("an object") {
            body[name] = value.clone();
        }
        running.post("/v1/chat/completions", &body)
    };
    for extra in [
        json!({"separate_reasoning": true, "temperature": null}),
        json!({"user": "7", "metadata": {"a": "b"}, "store": true, "service_tier": "auto", "prompt_cache_key": "k"}),
        json!({"user": null, "metadata": null, "store": null, "service_tier": null, "prompt_cache_key": null}),
    ] {
        let answer = ask(extra.clone());
        assert_eq!(answer.status, 200, "{extra}: {}", answer.text);
    }
    for (extra, param) in [
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (json!({"messages": [{"content": "a"}]}), "messages[0].role"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            "messages[0].content[0].type",
        ),
        (json!({"tools": [{"type": "function"}]}), "tools[0].function"),
        (json!({"tool_choice": "maybe"}), "tool_choice"),
        (json!({"n": 99}), "n"),
        (json!({"stream_options": 1}), "stream_options"),
        (json!({"model": 5}), "model"),
        (json!({"user": 7}), "user"),
        (json!({"metadata": "a"}), "metadata"),
        (json!({"store": "yes"}), "store"),
        (json!({"service_tier": 1}), "service_tier"),
        (json!({"prompt_cache_key": ["k"]}), "prompt_cache_key"),
        (json!({"safety_identifier": 1}), "safety_identifier"),
    ] {
        let answer = ask(extra.clone());
        assert_eq!(answer.status, 400, "{extra}: {}", answer.text);
        assert_eq!(answer.body["error"]["param"], param, "{extra}: {}", answer.text);
    }
}
