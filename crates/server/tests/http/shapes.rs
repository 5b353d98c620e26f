//! Errors of the address and the head of a request, in the shape of the path's dialect.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

/// The message of an error in the shape of this path.
fn message(path: &str, answer: &Answer) -> String {
    let body = &answer.body;
    let message = match path {
        _ if path.starts_with("/v1/messages") => {
            assert_eq!(body["type"], "error", "{path}: {}", answer.text);
            &body["error"]["message"]
        }
        _ if path.starts_with("/api/") => &body["error"],
        _ => &body["error"]["message"],
    };
    message.as_str().unwrap_or_else(|| panic!("{path}: {}", answer.text)).to_owned()
}

#[test]
fn bodies_in_unknown_encodings_are_refused_in_each_dialect() {
    let running = Setup::built_in(1).start();
    for path in ["/v1/chat/completions", "/v1/messages", "/api/chat", "/completion"] {
        for encoding in ["br", "deflate", "gzip, gzip", "x"] {
            let headers = json!({"content-encoding": encoding});
            let asked = json!({"method": "POST", "path": path, "headers": headers, "body": {}});
            let answer = running.send(&asked);
            assert_eq!(answer.status, 415, "{path}: {}", answer.text);
            assert!(message(path, &answer).contains(encoding));
        }
    }
    let headers = json!({"content-encoding": "identity"});
    let body = json!({"prompt": "A", "max_tokens": 1});
    let asked = json!({"method": "POST", "path": "/v1/completions", "headers": headers, "body": body});
    assert_eq!(running.send(&asked).status, 200);
}

#[test]
fn addresses_that_cannot_be_read_are_refused_in_each_dialect() {
    let mut setup = Setup::built_in(1);
    setup.config.slot_save_path = Some(std::env::temp_dir());
    let running = setup.start();
    for (method, path) in [
        ("GET", "/slots?model=a&model=b"),
        ("GET", "/props?model=a&model=b"),
        ("GET", "/v1/models/%ff"),
        ("GET", "/v1/responses/%ff"),
        ("POST", "/slots/%ff"),
        ("POST", "/slots/0?action=a&action=b"),
    ] {
        let answer = running.send(&json!({"method": method, "path": path}));
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
        assert!(!message(path, &answer).is_empty());
    }
    let missing = running.get("//v1/models");
    assert_eq!((missing.status, message("//v1/models", &missing).is_empty()), (404, false));
}

/// The status of a request with these lines as its head.
fn raw(running: &Running, head: &str) -> String {
    let mut stream = TcpStream::connect(running.address()).expect("the server listens");
    stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).expect("it takes requests");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

#[test]
fn a_request_has_one_host() {
    let running = Setup::built_in(1).start();
    let two = raw(&running, "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nhost: evil.example");
    assert!(two.starts_with("HTTP/1.1 400"), "{two}");
    assert!(raw(&running, "GET /v1/models HTTP/1.1\r\nhost: localhost").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_body_whose_length_is_too_large_is_refused_before_it_is_sent() {
    let mut setup = Setup::built_in(1);
    setup.config.bounds.max_body = 1000;
    let running = setup.start();
    // Nothing of it is sent.
    let text = raw(&running, "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1001");
    assert!(text.starts_with("HTTP/1.1 413") && text.contains("request_too_large"), "{text}");
}

#[test]
fn pages_may_send_the_headers_of_sdks_and_no_others() {
    let running = Setup::built_in(1).start();
    let ask = |names: &str| {
        let headers = json!({"origin": "http://localhost:3000", "access-control-request-method": "POST",
            "access-control-request-headers": names});
        let answer = running.send(&json!({"method": "OPTIONS", "path": "/v1/messages", "headers": headers}));
        assert_eq!(answer.status, 204);
        answer.headers["access-control-allow-headers"].to_str().expect("a text").to_owned()
    };
    assert_eq!(
        ask("authorization,X-Stainless-OS, anthropic-version,x-evil,cookie"),
        "authorization, X-Stainless-OS, anthropic-version"
    );
}

#[test]
fn fields_of_a_completion_are_called_by_their_paths() {
    let running = Setup::built_in(1).start();
    let fields = ["content", "generation_settings/n_predict", "missing"];
    let body = json!({"prompt": "A", "n_predict": 2, "response_fields": fields});
    let answer = running.post("/completion", &body).body;
    assert_eq!((&answer["generation_settings/n_predict"], answer["content"].is_string()), (&json!(2), true));
    assert_eq!(answer.as_object().map(serde_json::Map::len), Some(2), "{answer}");
}

#[test]
fn variables_of_a_request_are_added_to_those_of_the_server() {
    let mut setup = Setup::built_in(1);
    setup.chat_template("{{ greeting }}-{{ name }}-{{ messages[0].content }}");
    setup.options.variables.extra.insert("greeting".into(), "Hello".into());
    setup.options.variables.extra.insert("name".into(), "nobody".into());
    let running = setup.start();
    let prompt = |kwargs: Value| {
        let messages = json!([{"role": "user", "content": "x"}]);
        running.post("/apply-template", &json!({"messages": messages, "chat_template_kwargs": kwargs})).body["prompt"]
            .clone()
    };
    assert_eq!(prompt(json!({"name": "Ann"})), "Hello-Ann-x");
    assert_eq!(prompt(Value::Null), "Hello-nobody-x");
}
