//! Signs of a server: of life, of its queue, and its log.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use chaski_server::{Entry, Key};
use serde_json::{Value, json};

use crate::clients::is_full;
use crate::operation::{begin, n_busy, wait_until};
use crate::serve::{Running, Setup};

/// A request that runs to the end of the context.
fn long() -> Value {
    json!({"prompt": "Once", "json_schema": {"type": "string", "minLength": 2000}, "temperature": 0})
}

#[test]
fn a_model_without_signs_of_life_makes_the_server_unhealthy() {
    let mut setup = Setup::built_in(1);
    // Time passes between any two steps.
    setup.config.bounds.stall = Duration::ZERO;
    let running = setup.start();
    assert_eq!(running.get("/health").status, 200, "nothing is asked for");
    let open = begin(&running, "/v1/completions", &long(), 0);
    wait_until("it is told", Duration::from_secs(10), || {
        let health = running.get("/health");
        health.status == 503 && health.headers.contains_key("retry-after")
    });
    assert_eq!(running.get("/livez").status, 200);
    drop(open);
    wait_until("it is healthy", Duration::from_secs(10), || running.get("/health").status == 200);
}

#[test]
fn the_head_that_comes_before_the_first_token_has_a_comment() {
    let mut setup = Setup::built_in(1);
    setup.config.stream_head = Duration::from_millis(1);
    let running = setup.start();
    for (path, first) in
        [("/v1/chat/completions", ":\n\n"), ("/v1/messages", ":\n\n"), ("/api/chat", "{\"model\"")]
    {
        let open = begin(&running, "/v1/completions", &long(), 0);
        wait_until("it runs", Duration::from_secs(10), || n_busy(&running) == 1);
        let messages = json!([{"role": "user", "content": "Hi"}]);
        let answer = running.post(
            path,
            &json!({"model": "golden", "messages": messages, "max_tokens": 2, "stream": true,
            "options": {"num_predict": 2}}),
        );
        assert!(answer.text.starts_with(first), "{path}: {}", answer.text);
        drop(open);
        wait_until("it ends", Duration::from_secs(10), || running.get("/load").body["server_load"] == 0);
    }
}

#[test]
fn streams_give_signs_of_life_while_they_wait() {
    if !is_full() {
        return;
    }
    let mut setup = Setup::built_in(1);
    setup.config.stream_head = Duration::from_millis(1);
    let running = setup.start();
    for (path, more) in [
        ("/v1/chat/completions", json!({"messages": [{"role": "user", "content": "Hi"}]})),
        ("/v1/completions", json!({"prompt": "Hi"})),
        ("/completion", json!({"prompt": "Hi"})),
    ] {
        let open = [0, 1].map(|_| begin(&running, "/v1/completions", &long(), 0));
        wait_until("they are there", Duration::from_secs(10), || {
            running.get("/load").body["server_load"] == 2
        });
        wait_until("one runs", Duration::from_secs(10), || n_busy(&running) == 1);
        let mut body = json!({"max_tokens": 2, "stream": true, "sse_ping_interval": 1});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let answer = running.post(path, &body);
        // One with the head, and more while the other answers run.
        let n = answer.text.matches(":\n\n").count();
        assert!(n >= 2 && answer.text.starts_with(":\n\n:\n\n"), "{path}: {n}: {}", answer.text);
        drop(open);
        wait_until("it ends", Duration::from_secs(10), || running.get("/load").body["server_load"] == 0);
    }
}

#[test]
fn a_full_queue_says_how_long_it_takes() {
    let mut setup = Setup::built_in(1);
    setup.max_waiting = 8;
    let running = setup.start();
    let prompt = "Once upon a time ".repeat(60);
    let body = json!({"prompt": prompt, "json_schema": {"type": "string", "minLength": 2000}, "temperature": 0,
        "cache_prompt": true});
    // It is measured how long one takes.
    let start = std::time::Instant::now();
    assert_eq!(running.post("/v1/completions", &body).status, 200);
    let alone = start.elapsed().as_secs_f64();
    let open: Vec<_> = (0..9).map(|_| begin(&running, "/v1/completions", &body, 0)).collect();
    wait_until("the queue is full", Duration::from_secs(20), || {
        running.get("/metrics").text.lines().any(|line| line == "llamacpp:requests_deferred 8")
    });
    let refused = running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1}));
    assert_eq!(refused.status, 429, "{}", refused.text);
    let seconds: f64 = refused.headers["retry-after"].to_str().expect("a number").parse().expect("a number");
    // Eight of them wait; prompts that are cached take less.
    let most = (alone * 8.0 * 3.0).ceil().max(2.0);
    assert!((1.0..=60.0).contains(&seconds) && seconds <= most, "{seconds} s for 8 of {alone} s");
    assert!(alone < 1.0 || seconds >= 2.0, "{seconds} s for 8 of {alone} s");
    drop(open);
}

/// A server with two keys, and the lines of its log that are told without `-v`.
fn logged() -> (Running, Arc<Mutex<Vec<Entry>>>) {
    let mut setup = Setup::built_in(2);
    setup.config.keys = vec![Key::new("ann", "a")];
    setup.options.pooling = Some(chaski::embedding::Pooling::Mean);
    let lines = Arc::<Mutex<Vec<Entry>>>::default();
    let log = lines.clone();
    setup.config.log = Some(Arc::new(move |entry: &Entry| {
        let is_told = match entry {
            Entry::Access(access) => access.is_only,
            _ => true,
        };
        if is_told {
            log.lock().expect("no test panics").push(entry.clone());
        }
    }));
    (setup.start(), lines)
}

#[test]
fn each_request_for_work_has_one_line() {
    let (running, lines) = logged();
    let messages = json!([{"role": "user", "content": "Hi"}]);
    for (path, body, status) in [
        ("/v1/chat/completions", json!({"messages": messages, "max_tokens": 2}), 200),
        ("/v1/chat/completions", json!({"messages": messages, "max_tokens": 2, "stream": true}), 200),
        ("/v1/embeddings", json!({"input": "Hi"}), 200),
        ("/tokenize", json!({"content": "Hi"}), 200),
        ("/v1/messages/count_tokens", json!({"model": "golden", "messages": messages}), 200),
        ("/v1/chat/completions", json!({"messages": 1}), 400),
    ] {
        let asked =
            json!({"method": "POST", "path": path, "body": body, "headers": {"authorization": "Bearer a"}});
        assert_eq!(running.send(&asked).status, status, "{path}");
        let found = || lines.lock().expect("no test panics").len();
        wait_until(path, Duration::from_secs(5), || found() > 0);
        thread::sleep(Duration::from_millis(20));
        let all = std::mem::take(&mut *lines.lock().expect("no test panics"));
        let [line] = all.as_slice() else { panic!("{path}: {all:?}") };
        let (key, said) = match line {
            Entry::Answered(line) => (line.key.as_deref(), line.status),
            Entry::Access(line) => (line.key.as_deref(), line.status),
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!((key, said), (Some("ann"), status), "{path}");
    }
    // Questions about the server have none.
    assert_eq!(running.get("/health").status, 200);
    assert!(lines.lock().expect("no test panics").is_empty());
}

#[test]
fn measurements_have_descriptions_and_two_forms() {
    let running = Setup::built_in(1).start();
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 3})).status, 200);
    let plain = running.get("/metrics");
    assert!(
        plain.headers["content-type"]
            .to_str()
            .is_ok_and(|kind| kind.starts_with("text/plain; version=0.0.4"))
    );
    let named = |text: &str, word: &str| -> Vec<String> {
        let rest =
            text.lines().filter_map(|line| line.strip_prefix("# ")?.strip_prefix(word)?.strip_prefix(' '));
        let mut names: Vec<String> =
            rest.filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect();
        names.sort();
        names
    };
    let names = named(&plain.text, "TYPE");
    assert_eq!(names, named(&plain.text, "HELP"), "each has a description");
    for name in [
        "chaski_queue_tokens",
        "chaski_gpu_memory_bytes",
        "chaski_step_seconds",
        "vllm:iteration_tokens_total",
        "vllm:lora_requests_info",
    ] {
        assert!(names.iter().any(|found| found == name), "{name}");
    }
    // A prompt with its first token, and two tokens more.
    let value = |name: &str| {
        let line = plain.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {}", plain.text)).parse::<f64>().expect("a number")
    };
    let of_model = "{model_name=\"golden\",engine=\"0\"}";
    let n_step = value(&format!("vllm:iteration_tokens_total_count{of_model}"));
    assert!(n_step >= 3.0 && value(&format!("vllm:iteration_tokens_total_sum{of_model}")) > n_step);
    let count = |kind: &str| value(&format!("chaski_step_seconds_count{{model=\"golden\",kind=\"{kind}\"}}"));
    assert!(count("prefill") >= 1.0 && count("prefill") + count("decode") == n_step);
    let headers = json!({"accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1"});
    let open = running.send(&json!({"method": "GET", "path": "/metrics", "headers": headers}));
    assert!(
        open.headers["content-type"]
            .to_str()
            .is_ok_and(|kind| kind.starts_with("application/openmetrics-text"))
    );
    assert!(open.text.ends_with("# EOF\n") && !open.text.contains("\n\n"));
    assert!(open.text.contains("# TYPE vllm:generation_tokens counter\n"), "{}", open.text);
    for line in open.text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")) {
        assert!(!line.ends_with("_total"), "{line}");
        assert!(open.text.lines().any(|sample| sample.starts_with(&format!("{line}_total"))), "{line}");
    }
}

#[test]
fn tokens_of_abandoned_answers_count() {
    let running = Setup::built_in(1).start();
    let mut body = long();
    body["stream"] = true.into();
    drop(begin(&running, "/v1/completions", &body, 30));
    let count = || {
        let text = running.get("/metrics").text;
        let line = text.lines().find_map(|line| line.strip_prefix("llamacpp:tokens_predicted_total "));
        line.map_or(0, |n| n.parse::<u64>().expect("a number"))
    };
    wait_until("they count", Duration::from_secs(10), || count() > 0);
}
