//! Traces: the header `traceparent`, in the log, and as spans for a collector.

use std::sync::{Arc, Mutex};

use chaski_server::Entry;
use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn ask(running: &Running, path: &str, traceparent: Option<&str>, body: &Value) -> Answer {
    let mut request = json!({"method": "POST", "path": path, "body": body, "headers": {}});
    if let Some(value) = traceparent {
        request["headers"]["traceparent"] = value.into();
    }
    running.send(&request)
}

fn chat() -> Value {
    json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, "ignore_eos": true})
}

/// The parts of a response's `traceparent`.
fn parts(answer: &Answer) -> Vec<String> {
    let header = answer.headers["traceparent"].to_str().expect("it is text");
    header.split('-').map(String::from).collect()
}

#[test]
fn a_trace_is_in_the_response_and_the_log() {
    let mut setup = Setup::built_in(1);
    let entries: Arc<Mutex<Vec<Entry>>> = Arc::default();
    let log = entries.clone();
    setup.config.log = Some(Arc::new(move |entry| log.lock().unwrap().push(entry.clone())));
    let running = setup.start();
    let answer = ask(&running, "/v1/chat/completions", Some(&format!("00-{TRACE}-{PARENT}-01")), &chat());
    assert_eq!(answer.status, 200);
    let found = parts(&answer);
    assert_eq!((found[0].as_str(), found[1].as_str(), found[3].as_str()), ("00", TRACE, "01"));
    assert!(found[2] != PARENT && found[2].len() == 16, "{found:?}");
    // Errors have it, too; what is no trace is none.
    assert_eq!(
        parts(&ask(&running, "/v1/messages", Some(&format!("00-{TRACE}-{PARENT}-00")), &json!({})))[3],
        "00"
    );
    assert!(!ask(&running, "/v1/messages", Some("00-1-2-3"), &json!({})).headers.contains_key("traceparent"));
    drop(running);
    let entries = entries.lock().unwrap();
    let traces: Vec<(&str, Option<&str>)> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Access(access) => Some(("access", access.trace_id.as_deref())),
            Entry::Answered(answered) => {
                assert!(answered.queue <= answered.ttft, "{answered:?}");
                Some(("answered", answered.trace_id.as_deref()))
            }
            _ => None,
        })
        .collect();
    let expected =
        [("answered", Some(TRACE)), ("access", Some(TRACE)), ("access", Some(TRACE)), ("access", None)];
    assert_eq!(traces, expected);
}

#[cfg(feature = "otlp")]
mod spans {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Held;
    use opentelemetry_proto::tonic::trace::v1::Span;
    use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
    use prost::Message as _;

    use super::*;
    use crate::operation::{begin, n_busy, wait_until};

    /// A collector: it takes what programs send.
    struct Collector {
        url: String,
        requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    }

    impl Collector {
        /// One that answers with this status.
        fn start(status: &'static str) -> Collector {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            let url = format!("http://{}", listener.local_addr().unwrap());
            let requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>> = Arc::default();
            let found = requests.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let found = found.clone();
                    std::thread::spawn(move || {
                        Collector::serve(&stream.expect("it connects"), status, &found)
                    });
                }
            });
            Collector { url, requests }
        }

        /// Takes the requests of a connection until it ends.
        fn serve(mut stream: &TcpStream, status: &str, found: &Mutex<Vec<ExportTraceServiceRequest>>) {
            let mut reader = BufReader::new(stream);
            loop {
                let mut head = Vec::new();
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    head.push(std::mem::take(&mut line).trim().to_lowercase());
                }
                let Some(first) = head.first() else { return };
                assert_eq!(first, "post /v1/traces http/1.1");
                assert!(head.contains(&"content-type: application/x-protobuf".to_owned()), "{head:?}");
                let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
                let mut body = vec![0; length.expect("it has a length").parse().unwrap()];
                reader.read_exact(&mut body).expect("the body comes");
                found.lock().unwrap().push(ExportTraceServiceRequest::decode(&body[..]).expect("it is one"));
                let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                if stream.write_all(response.as_bytes()).is_err() {
                    return;
                }
            }
        }

        /// All spans, after the server that sent them has ended.
        fn spans(&self) -> Vec<Span> {
            let requests = self.requests.lock().unwrap();
            let resources = requests.iter().flat_map(|request| request.resource_spans.clone());
            let all: Vec<_> = resources.collect();
            for resource in &all {
                let service = resource.resource.clone().unwrap().attributes;
                assert!(
                    service
                        .iter()
                        .any(|pair| pair.key == "service.name" && format!("{pair:?}").contains("chaski"))
                );
            }
            all.into_iter().flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// An attribute as JSON.
    fn attribute(span: &Span, name: &str) -> Value {
        let found = span.attributes.iter().find(|pair| pair.key == name);
        fn json_of(held: Option<Held>) -> Value {
            match held {
                Some(Held::StringValue(text)) => text.into(),
                Some(Held::IntValue(n)) => n.into(),
                Some(Held::ArrayValue(list)) => {
                    list.values.into_iter().map(|value| json_of(value.value)).collect()
                }
                other => panic!("{other:?}"),
            }
        }
        found.map_or(Value::Null, |pair| json_of(pair.value.clone().and_then(|value| value.value)))
    }

    fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
        spans.iter().filter(|span| span.name == name).collect()
    }

    #[test]
    fn spans_of_requests_reach_a_collector() {
        let collector = Collector::start("200 OK");
        let mut setup = Setup::built_in(2);
        setup.options.pooling = Some(chaski::embedding::Pooling::Mean);
        setup.config.otlp = collector.url.parse().ok();
        let running = setup.start();
        let given = format!("00-{TRACE}-{PARENT}-01");
        let mut asked = chat();
        (asked["n"], asked["model"]) = (2.into(), "other".into());
        let answer = ask(&running, "/v1/chat/completions", Some(&given), &asked);
        let own = parts(&answer).remove(2);
        let begun = parts(&ask(&running, "/v1/completions", None, &json!({"prompt": "A", "max_tokens": 2})));
        assert_eq!(ask(&running, "/v1/embeddings", None, &json!({"input": "A"})).status, 200);
        assert_eq!(ask(&running, "/v1/chat/completions", None, &json!({})).status, 400);
        // Nobody keeps these.
        ask(
            &running,
            "/v1/completions",
            Some(&format!("00-{TRACE}-{PARENT}-00")),
            &json!({"prompt": "A", "max_tokens": 5}),
        );
        assert_eq!(running.get("/health").status, 200);
        assert_eq!(running.get("/chat.js").status, 200);
        let long = json!({"prompt": "Once", "max_tokens": 480, "ignore_eos": true, "stream": true});
        let reader = begin(&running, "/v1/completions", &long, 12);
        drop(reader);
        wait_until("it ends", Duration::from_secs(5), || n_busy(&running) == 0);
        drop(running);
        let spans = collector.spans();
        let [chat] = named(&spans, "chat golden")[..] else { panic!("{spans:#?}") };
        assert_eq!(
            (hex(&chat.trace_id), hex(&chat.parent_span_id), hex(&chat.span_id)),
            (TRACE.into(), PARENT.into(), own)
        );
        // A server.
        assert_eq!(chat.kind, 2);
        for (name, value) in [
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.request.model", json!("other")),
            ("gen_ai.response.model", json!("golden")),
            ("gen_ai.request.max_tokens", json!(3)),
            ("gen_ai.response.finish_reasons", json!(["length", "length"])),
            ("gen_ai.usage.output_tokens", json!(6)),
            ("gen_ai.response.id", answer.body["id"].clone()),
            ("http.route", json!("/v1/chat/completions")),
        ] {
            assert_eq!(attribute(chat, name), value, "{name}");
        }
        for name in ["queue", "prefill", "decode"] {
            let of_chat = named(&spans, name).into_iter().filter(|span| span.parent_span_id == chat.span_id);
            let of_chat: Vec<&Span> = of_chat.collect();
            assert_eq!(of_chat.len(), 2, "{name}: one of each answer");
            for span in of_chat {
                assert_eq!(span.trace_id, chat.trace_id);
                assert!(chat.start_time_unix_nano <= span.start_time_unix_nano + 1_000_000, "{name}");
                assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{name}");
                assert!(span.end_time_unix_nano <= chat.end_time_unix_nano + 1_000_000, "{name}");
            }
        }
        let texts = named(&spans, "text_completion golden");
        assert_eq!(texts.len(), 2, "one whole, one that was left");
        assert_eq!((hex(&texts[0].trace_id), hex(&texts[0].span_id)), (begun[1].clone(), begun[2].clone()));
        assert!(texts[0].parent_span_id.is_empty());
        assert_eq!(attribute(texts[1], "gen_ai.response.finish_reasons"), json!(["abort"]));
        let [refused] = named(&spans, "POST /v1/chat/completions")[..] else { panic!("{spans:#?}") };
        assert_eq!(attribute(refused, "http.response.status_code"), 400);
        assert_eq!(attribute(chat, "http.response.status_code"), 200);
        assert_eq!(refused.status.as_ref().map_or(0, |status| status.code), StatusCode::Unset as i32);
        let [read] = named(&spans, "embeddings golden")[..] else { panic!("{spans:#?}") };
        assert_eq!(attribute(read, "gen_ai.operation.name"), "embeddings");
        assert_eq!(attribute(read, "http.route"), "/v1/embeddings");
        assert!(attribute(read, "gen_ai.usage.input_tokens").as_i64() > Some(0));
        let roots = spans.iter().filter(|span| span.kind == 2).filter(|span| !span.name.contains("/slots"));
        assert_eq!(roots.count(), 5, "{:?}", spans.iter().map(|span| &span.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_collector_that_refuses_is_told_once_and_harms_nobody() {
        let collector = Collector::start("400 Bad Request");
        let mut setup = Setup::built_in(1);
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = notes.clone();
        setup.config.log = Some(Arc::new(move |entry| {
            if let Entry::Note(text) = entry {
                log.lock().unwrap().push(text.clone());
            }
        }));
        setup.config.otlp = format!("{}/v1/traces", collector.url).parse().ok();
        let running = setup.start();
        // More spans than a batch has.
        for _ in 0..200 {
            assert_eq!(
                ask(&running, "/v1/completions", None, &json!({"prompt": "A", "max_tokens": 1})).status,
                200
            );
        }
        drop(running);
        let notes = notes.lock().unwrap();
        assert!(collector.requests.lock().unwrap().len() > 1);
        let [note] = &notes[..] else { panic!("{notes:?}") };
        assert!(note.contains("it answers with status 400"), "{note}");
    }

    #[test]
    fn a_request_that_fails_is_a_span_with_its_status() {
        let collector = Collector::start("200 OK");
        let mut setup = Setup::built_in(1);
        setup.config.otlp = collector.url.parse().ok();
        setup.config.bounds.request_timeout = Some(Duration::ZERO);
        let running = setup.start();
        let body = json!({"prompt": "Once", "model": "m".repeat(300)});
        assert_eq!(ask(&running, "/v1/completions", None, &body).status, 408);
        drop(running);
        let spans = collector.spans();
        let [late] = named(&spans, "text_completion golden")[..] else { panic!("{spans:#?}") };
        assert_eq!(attribute(late, "http.response.status_code"), 408);
        assert_eq!(attribute(late, "error.type"), "408");
        assert_eq!(attribute(late, "gen_ai.request.model"), "m".repeat(256));
        assert_eq!(attribute(late, "gen_ai.response.finish_reasons"), json!(["abort"]));
    }

    #[test]
    fn an_address_that_is_none_is_an_error() {
        let error = "https://collector.example".parse::<chaski_server::Collector>().expect_err("it is none");
        assert_eq!(
            error.to_string(),
            "`https://collector.example` is no address of a collector: http://HOST:PORT"
        );
    }
}
