//! Clients that fail: huge bodies, readers that read nothing, streams of HTTP/2 that are reset; and a device that is
//! lost.

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clients::is_full;
use crate::operation::{begin, is_idle, n_busy, wait_until};
use crate::serve::{Running, Setup};

/// Sends a body of 10^8 bytes after this head, and reads the response.
fn huge(running: &Running, head: &str, before: &str) -> String {
    let mut stream = TcpStream::connect(running.address()).expect("the server listens");
    let head = format!("POST /v1/completions HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n{before}");
    stream.write_all(head.as_bytes()).expect("it takes requests");
    let piece = vec![b' '; 1_000_000];
    for _ in 0..100 {
        stream.write_all(&piece).expect("it takes all of the body");
    }
    let mut response = [0; 4096];
    let n = stream.read(&mut response).expect("it answers");
    String::from_utf8_lossy(&response[..n]).into_owned()
}

#[test]
fn huge_bodies_are_refused_and_harm_nobody() {
    let running = Setup::built_in(1).start();
    // With a length, and as one chunk of 10^8 bytes.
    for (head, before) in [("content-length: 100000000", ""), ("transfer-encoding: chunked", "5F5E100\r\n")] {
        let response = huge(&running, head, before);
        assert!(response.starts_with("HTTP/1.1 413"), "{head}: {response}");
        assert!(response.contains("request_too_large"), "{head}: {response}");
    }
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1})).status, 200);
}

#[test]
fn a_reader_that_reads_nothing_loses_its_stream() {
    let mut setup = Setup::built_in(8);
    setup.config.stream_stall = Duration::from_millis(300);
    let running = setup.start();
    // Much more than the buffers of sockets have room for.
    let body =
        json!({"messages": [{"role": "user", "content": "Hi"}], "stream": true, "n": 8, "logprobs": true,
        "top_logprobs": 20, "ignore_eos": true, "max_tokens": 480})
        .to_string();
    let mut stream = TcpStream::connect(running.address()).expect("the server listens");
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body.as_bytes()))
        .expect("it takes requests");
    wait_until("it is given up", Duration::from_secs(60), || {
        let text = running.get("/metrics").text;
        text.lines().any(|line| line.contains("finished_reason=\"abort\"") && !line.ends_with(" 0"))
    });
    wait_until("nothing runs or holds pages", Duration::from_secs(5), || is_idle(&running));
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1})).status, 200);
    drop(stream);
}

/// A frame of HTTP/2 on stream 1, or on the connection.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let n = u32::try_from(payload.len()).expect("small frames").to_be_bytes();
    [&n[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Reads frames until one of this kind.
fn read_until(stream: &mut TcpStream, kind: u8) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).expect("it sends frames");
        let n = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; n as usize];
        stream.read_exact(&mut payload).expect("frames are whole");
        if head[3] == kind {
            return;
        }
    }
}

#[test]
fn a_stream_of_http2_that_is_reset_ends_its_request() {
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const SETTINGS: u8 = 4;
    let running = Setup::built_in(2).start();
    let body: Value =
        json!({"prompt": "Once", "json_schema": {"type": "string", "minLength": 2000}, "stream": true});
    let text = |index: u8, text: &str| {
        let n = u8::try_from(text.len()).expect("short texts");
        [&[index, n], text.as_bytes()].concat()
    };
    let mut stream = TcpStream::connect(running.address()).expect("the server listens");
    // The table of HPACK has `:method: POST` as 3, `:scheme: http` as 6, `:path` as 4, and `:authority` as 1.
    let head = [vec![0x83, 0x86], text(0x04, "/v1/completions"), text(0x01, "localhost")].concat();
    let sent = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(HEADERS, 4, 1, &head),
        frame(0, 1, 1, body.to_string().as_bytes()),
    ];
    stream.write_all(&sent.concat()).expect("it takes frames");
    read_until(&mut stream, 0);
    wait_until("it runs", Duration::from_secs(10), || n_busy(&running) == 1);
    stream.write_all(&frame(RESET, 0, 1, &8u32.to_be_bytes())).expect("it takes frames");
    wait_until("it ends, and holds no pages", Duration::from_secs(5), || is_idle(&running));
    let text = running.get("/metrics").text;
    let ended = "vllm:request_success_total{model_name=\"golden\",engine=\"0\",finished_reason=\"abort\"} 1";
    assert!(text.lines().any(|line| line == ended), "{text}");
}

/// Kernels for a GPU take a while to compile where there is none, so this is for full runs.
#[test]
fn a_device_that_is_lost_in_mid_stream_is_not_noticed() {
    if !is_full() {
        return;
    }
    let gpu = Arc::new(OnceLock::new());
    let mut setup = Setup::built_in(2);
    setup.gpu = Some(gpu.clone());
    let running = setup.start();
    let body = json!({"prompt": "Once upon a time", "max_tokens": 48, "temperature": 0, "ignore_eos": true});
    let ask = || running.post("/v1/completions", &body).body["choices"][0]["text"].clone();
    let expected = ask();
    let mut streamed = body.clone();
    streamed["stream"] = true.into();
    // The head, and some events.
    let reader = begin(&running, "/v1/completions", &streamed, 0);
    let mut text = String::new();
    for (n, line) in
        reader.lines().map_while(Result::ok).filter(|line| line.starts_with("data: ")).enumerate()
    {
        if n == 4 {
            gpu.get().expect("a GPU, or a software driver").destroy();
        }
        let data = &line["data: ".len()..];
        if data == "[DONE]" {
            break;
        }
        let event: Value = serde_json::from_str(data).expect("events are JSON");
        assert!(event["error"].is_null(), "{event}");
        text += event["choices"][0]["text"].as_str().unwrap_or_default();
    }
    assert_eq!(expected, text);
    assert_eq!(ask(), expected, "on another device");
    let health = running.get("/health");
    assert_eq!(health.status, 200, "{}", health.text);
}
