//! Clients that leave, wait, or may not ask; and the end of a server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use chaski_server::Key;
use serde_json::{Value, json};

use crate::serve::{Running, Setup};

/// A request that takes long enough for others to come.
pub(crate) fn long(stream: bool) -> Value {
    json!({
        "prompt": "Once upon a time", "max_tokens": 480, "temperature": 0, "ignore_eos": true, "stream": stream,
    })
}

/// Sends a request and reads this many lines of its response.
pub(crate) fn begin(running: &Running, path: &str, body: &Value, n_line: usize) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(running.address()).expect("the server listens");
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body.as_bytes()))
        .expect("it takes requests");
    let mut reader = BufReader::new(stream);
    for _ in 0..n_line {
        let mut line = String::new();
        reader.read_line(&mut line).expect("it answers");
    }
    reader
}

/// Requests that run or wait.
pub(crate) fn n_busy(running: &Running) -> usize {
    let slots = running.get("/slots").body;
    slots.as_array().expect("slots are a list").iter().filter(|slot| slot["is_processing"] == true).count()
}

/// True if no request runs or waits, and no page of the KV cache is in use.
pub(crate) fn is_idle(running: &Running) -> bool {
    let text = running.get("/metrics").text;
    let mut used = text.lines().filter(|line| line.starts_with("vllm:kv_cache_usage_perc{")).peekable();
    assert!(used.peek().is_some(), "the model is loaded: {text}");
    n_busy(running) == 0 && used.all(|line| line.ends_with(" 0"))
}

pub(crate) fn wait_until(what: &str, limit: Duration, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Endpoints that answer, in each dialect.
const ANSWERING: [&str; 6] =
    ["/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/completion", "/api/chat"];

/// [`long`] for any of them, with this prompt.
fn long_in_any(prompt: &str, stream: bool) -> Value {
    let mut body = long(stream);
    body["model"] = "golden".into();
    body["messages"] = json!([{"role": "user", "content": prompt}]);
    for name in ["prompt", "input"] {
        body[name] = prompt.into();
    }
    body["max_output_tokens"] = 480.into();
    body["options"] = json!({"num_predict": 480, "temperature": 0, "ignore_eos": true});
    body
}

#[test]
fn a_client_that_leaves_ends_its_request() {
    let running = Setup::built_in(2).start();
    for (path, stream) in ANSWERING.iter().flat_map(|path| [(path, true), (path, false)]) {
        let body = long_in_any("Once upon a time", stream);
        let reader = begin(&running, path, &body, if stream { 12 } else { 0 });
        let what = |what: &str| format!("{path}, {stream}: {what}");
        wait_until(&what("it runs"), Duration::from_secs(20), || n_busy(&running) == 1);
        drop(reader);
        wait_until(&what("it ends, and holds no pages"), Duration::from_secs(5), || is_idle(&running));
    }
    // The others are not disturbed.
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 2})).status, 200);
}

#[test]
fn a_client_that_leaves_in_the_midst_of_a_prompt_ends_its_request() {
    let mut setup = Setup::built_in(2);
    // Room for prompts of many steps.
    setup.n_ctx = 8192;
    let running = setup.start();
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 2})).status, 200);
    let n_token = || seconds(&running.get("/metrics").text, "vllm:generation_tokens_total");
    for path in ANSWERING {
        // Each has a beginning of its own, so that none is cached.
        let prompt = format!("{path} {}", vec!["fox"; 3000].join(" "));
        let before = n_token();
        let reader = begin(&running, path, &long_in_any(&prompt, true), 0);
        let what = |what: &str| format!("{path}: {what}");
        wait_until(&what("it runs"), Duration::from_secs(20), || n_busy(&running) == 1);
        drop(reader);
        wait_until(&what("it ends, and holds no pages"), Duration::from_secs(5), || is_idle(&running));
        assert_eq!(n_token(), before, "{path}: no token was chosen");
    }
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 2})).status, 200);
}

#[test]
fn answers_do_not_depend_on_others() {
    let running = Setup::built_in(4).start();
    let ask = |i: usize| {
        let body = json!({"prompt": format!("Once upon a time, {i}"), "max_tokens": 24, "seed": i, "temperature": 0.7});
        running.post("/v1/completions", &body).body["choices"][0]["text"].clone()
    };
    let alone: Vec<Value> = (0..8).map(ask).collect();
    let together: Vec<Value> = thread::scope(|scope| {
        let asked: Vec<_> = (0..8).map(|i| scope.spawn(move || ask(i))).collect();
        asked.into_iter().map(|one| one.join().expect("no client panics")).collect()
    });
    assert_eq!(alone, together);
    assert!(alone.iter().all(|text| !text.as_str().unwrap_or_default().is_empty()));
}

#[test]
fn streams_are_the_whole_answer() {
    let running = Setup::built_in(2).start();
    let mut body = json!({
        "messages": [{"role": "user", "content": "A story, please."}], "max_tokens": 40, "seed": 3, "n": 2,
    });
    let whole = running.post("/v1/chat/completions", &body).body;
    body["stream"] = true.into();
    let streamed = running.post("/v1/chat/completions", &body);
    assert!(streamed.text.ends_with("data: [DONE]\n\n"));
    for i in 0..2 {
        let parts = streamed.events.iter().filter(|(_, data)| data["choices"][0]["index"] == i);
        let text: String =
            parts.filter_map(|(_, data)| data["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(whole["choices"][i]["message"]["content"], text);
    }
}

#[test]
fn a_full_queue_says_when_to_come_again() {
    let mut setup = Setup::built_in(1);
    setup.max_waiting = 1;
    let running = setup.start();
    let open: Vec<_> = (0..2).map(|_| begin(&running, "/v1/completions", &long(true), 0)).collect();
    wait_until("one waits", Duration::from_secs(20), || {
        running.get("/metrics").text.lines().any(|line| line == "llamacpp:requests_deferred 1")
    });
    let refused = running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1}));
    assert_eq!((refused.status, refused.body["error"]["code"].as_str()), (429, Some("server_overloaded")));
    assert!(refused.headers.contains_key("retry-after"));
    drop(open);
    wait_until("there is room", Duration::from_secs(5), || {
        running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1})).status == 200
    });
}

#[test]
fn tokens_and_time_bound_the_queue_too() {
    let mut setup = Setup::built_in(1);
    setup.config.bounds.max_queued_tokens = Some(30);
    setup.config.bounds.max_prompt = Some(100);
    let running = setup.start();
    let fox = |n: usize| json!({"prompt": vec!["fox"; n].join(" "), "max_tokens": 1, "stream": true});
    let long = begin(&running, "/v1/completions", &long(true), 12);
    // One waits whatever its prompt, and others while there is room.
    let waits = begin(&running, "/v1/completions", &fox(60), 0);
    wait_until("one waits", Duration::from_secs(20), || {
        running.get("/metrics").text.lines().any(|line| line == "llamacpp:requests_deferred 1")
    });
    let refused = running.post("/v1/completions", &fox(1));
    assert_eq!((refused.status, refused.body["error"]["code"].as_str()), (429, Some("server_overloaded")));
    assert!(
        refused.headers.contains_key("retry-after") && refused.text.contains("tokens wait"),
        "{}",
        refused.text
    );
    let message = running.post(
        "/v1/messages",
        &json!({"model": "golden", "max_tokens": 1, "messages": [{"role": "user", "content": "A"}]}),
    );
    assert_eq!((message.status, message.body["error"]["type"].as_str()), (529, Some("overloaded_error")));
    let refused = running.post("/v1/completions", &fox(200));
    assert_eq!(
        (refused.status, refused.body["error"]["code"].as_str()),
        (400, Some("context_length_exceeded"))
    );
    assert!(refused.text.contains("> 100 maximum"), "{}", refused.text);
    let error = &refused.body["error"];
    assert!(error["n_prompt_tokens"].as_u64() > Some(100), "{error}");
    assert_eq!((&error["max_prompt_tokens"], &error["n_ctx"]), (&json!(100), &json!(512)));
    assert_eq!(n_refused(&running), [("queue_full".to_owned(), 2)]);
    drop((long, waits));
    wait_until("there is room", Duration::from_secs(5), || {
        running.post("/v1/completions", &fox(1)).status == 200
    });
}

#[test]
fn nobody_waits_longer_for_a_place_than_allowed() {
    let mut setup = Setup::built_in(1);
    setup.config.bounds.max_queue_time = Some(Duration::from_millis(20));
    let running = setup.start();
    // It runs longer than others may wait.
    let first = begin(&running, "/v1/completions", &long(true), 12);
    for stream in [false, true] {
        let refused = running.post("/v1/completions", &long(stream));
        assert_eq!(
            (refused.status, refused.body["error"]["code"].as_str()),
            (429, Some("server_overloaded"))
        );
        assert!(
            refused.headers.contains_key("retry-after") && refused.text.contains("waited"),
            "{}",
            refused.text
        );
    }
    drop(first);
    wait_until("there is room", Duration::from_secs(5), || n_busy(&running) == 0);
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1})).status, 200);
}

#[test]
fn only_known_names_and_origins_may_ask() {
    let running = Setup::built_in(1).start();
    let get =
        |headers: Value| running.send(&json!({"method": "GET", "path": "/v1/models", "headers": headers}));
    assert_eq!(get(json!({})).status, 200);
    assert_eq!(get(json!({"host": "evil.example"})).status, 403);
    assert_eq!(get(json!({"host": ""})).status, 403);
    let refused = get(json!({"origin": "https://evil.example"}));
    assert_eq!((refused.status, refused.body["error"]["type"].as_str()), (403, Some("permission_error")));
    assert!(!refused.headers.contains_key("access-control-allow-origin"));
    let allowed = get(json!({"origin": "http://localhost:3000"}));
    assert_eq!(allowed.headers["access-control-allow-origin"], "http://localhost:3000");
    // Names of requests are kept.
    assert_eq!(get(json!({"x-request-id": "mine-1"})).headers["x-request-id"], "mine-1");
}

#[test]
fn keys_are_required_in_each_dialect() {
    let mut setup = Setup::built_in(1);
    setup.config.keys = vec![Key::new("ann", "secret")];
    let running = setup.start();
    let ask = |path: &str, headers: Value| {
        running.send(&json!({"method": "POST", "path": path, "headers": headers, "body": {"prompt": "A"}}))
    };
    let missing = ask("/v1/completions", json!({}));
    assert_eq!((missing.status, missing.body["error"]["code"].as_str()), (401, Some("invalid_api_key")));
    assert_eq!(missing.headers["www-authenticate"], "Bearer");
    assert_eq!(ask("/completion", json!({"authorization": "Bearer wrong"})).body["error"]["code"], 401);
    assert_eq!(ask("/v1/messages", json!({})).body["error"]["type"], "authentication_error");
    assert!(ask("/api/chat", json!({})).body["error"].is_string());
    let right = json!({"authorization": "bearer secret"});
    let body = json!({"prompt": "A", "max_tokens": 1});
    let answer =
        running.send(&json!({"method": "POST", "path": "/v1/completions", "headers": right, "body": body}));
    assert_eq!(answer.status, 200);
    assert_eq!(running.get("/health").status, 200);
    assert_eq!(running.get("/metrics").status, 401);
}

#[test]
fn a_server_that_ends_lets_answers_end() {
    let mut setup = Setup::built_in(2);
    setup.config.drain_delay = Duration::from_millis(300);
    let mut running = setup.start();
    let mut reader = begin(&running, "/v1/completions", &long(true), 12);
    running.stop();
    wait_until("routers are told", Duration::from_secs(5), || running.get("/health").status == 503);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("the stream ends by itself");
    assert!(rest.contains("\"finish_reason\":\"length\"") && rest.contains("[DONE]"), "{rest}");
    drop(running);
}

#[test]
fn an_idle_server_waits_until_routers_have_noticed() {
    let mut setup = Setup::built_in(1);
    setup.config.drain_delay = Duration::from_millis(1500);
    let mut running = setup.start();
    let start = Instant::now();
    running.stop();
    wait_until("routers are told", Duration::from_secs(1), || running.get("/health").status == 503);
    assert_eq!(running.get("/livez").status, 200);
    // Requests are still taken.
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 2})).status, 200);
    wait_until("it ends", Duration::from_secs(10), || running.has_ended());
    assert!(start.elapsed() >= Duration::from_millis(1500), "{:?}", start.elapsed());
}

#[test]
fn a_server_that_ends_refuses_new_requests() {
    let mut running = Setup::built_in(1).start();
    let mut reader = begin(&running, "/v1/completions", &long(true), 12);
    running.stop();
    wait_until("it refuses", Duration::from_secs(5), || {
        running.get("/health").headers.contains_key("connection")
    });
    let refused = running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1}));
    assert_eq!((refused.status, &refused.body["error"]["code"]), (503, &json!("draining")));
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(refused.headers["connection"], "close");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("the stream ends by itself");
    assert!(rest.contains("[DONE]"), "{rest}");
}

#[test]
fn answers_that_do_not_end_in_time_end_with_an_error() {
    let mut setup = Setup::built_in(4);
    setup.config.drain_timeout = Duration::from_millis(1);
    let mut running = setup.start();
    // A text that takes longer, in each dialect.
    let schema = json!({"type": "string", "minLength": 2000});
    let format = json!({"type": "json_schema", "name": "a", "schema": schema});
    let messages = json!([{"role": "user", "content": "Once"}]);
    let bodies = [
        ("/v1/completions", json!({"prompt": "Once", "json_schema": schema, "stream": true})),
        (
            "/v1/messages",
            json!({"model": "golden", "max_tokens": 500, "messages": messages,
            "output_config": {"format": format}, "stream": true}),
        ),
        ("/v1/responses", json!({"input": "Once", "text": {"format": format}, "stream": true})),
        ("/api/generate", json!({"model": "golden", "prompt": "Once", "format": schema})),
    ];
    let mut streams = bodies.map(|(path, body)| (path, begin(&running, path, &body, 12)));
    let mut whole = begin(&running, "/v1/completions", &json!({"prompt": "Once", "json_schema": schema}), 0);
    wait_until("all wait or run", Duration::from_secs(20), || running.get("/load").body["server_load"] == 5);
    running.stop();
    let mut text = String::new();
    whole.read_to_string(&mut text).expect("it is told");
    assert!(text.starts_with("HTTP/1.1 503") && text.contains("\"draining\""), "{text}");
    for (path, stream) in &mut streams {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"));
        let expected = match *path {
            "/v1/messages" => "event: error\ndata: {",
            "/v1/responses" => "event: response.failed",
            "/api/generate" => "{\"error\":\"",
            _ => "data: {\"error\":{",
        };
        assert!(text.contains(expected) && !text.contains("[DONE]"), "{path}: {text}");
    }
}

#[test]
fn a_connection_may_be_idle_between_requests() {
    let running = Setup::built_in(1).start();
    let mut stream = TcpStream::connect(running.address()).expect("the server listens");
    let mut half = TcpStream::connect(running.address()).expect("the server listens");
    for (stream, head) in [
        (&mut stream, "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        // The second head begins, and does not go on.
        (&mut half, "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nGET /liv"),
    ] {
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("sockets have timeouts");
        stream.write_all(head.as_bytes()).expect("it takes requests");
    }
    let ok = |stream: &mut TcpStream| {
        let mut buffer = [0; 4096];
        let n = stream.read(&mut buffer).expect("the connection is open");
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    };
    assert!(ok(&mut stream).starts_with("HTTP/1.1 200") && ok(&mut half).starts_with("HTTP/1.1 200"));
    thread::sleep(Duration::from_secs(9));
    half.write_all(b"ez").expect("it is open");
    thread::sleep(Duration::from_millis(2500));
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it is open");
    assert!(ok(&mut stream).starts_with("HTTP/1.1 200"), "a pause of 11 s ends no connection");
    // A head has ten seconds from its first byte.
    half.write_all(b" HT").expect("it may be open");
    let start = Instant::now();
    let rest = ok(&mut half);
    assert!(rest.is_empty() && start.elapsed() < Duration::from_secs(11), "{rest}: {:?}", start.elapsed());
}

#[test]
fn metrics_count_what_was_asked() {
    let running = Setup::built_in(1).start();
    for _ in 0..2 {
        assert_eq!(
            running
                .post("/v1/completions", &json!({"prompt": "A fox", "max_tokens": 3, "ignore_eos": true}))
                .status,
            200
        );
    }
    let text = running.get("/metrics").text;
    for line in [
        "vllm:generation_tokens_total{model_name=\"golden\",engine=\"0\"} 6",
        "llamacpp:tokens_predicted_total 6",
        "vllm:request_success_total{model_name=\"golden\",engine=\"0\",finished_reason=\"length\"} 2",
        "vllm:inter_token_latency_seconds_count{model_name=\"golden\",engine=\"0\"} 4",
        "chaski_http_requests_total{path=\"/v1/completions\",status=\"200\"} 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

/// Seconds that a histogram or a counter has summed up.
fn seconds(metrics: &str, name: &str) -> f64 {
    let value = metrics.lines().filter(|line| line.starts_with(name)).find_map(|line| line.split(' ').nth(1));
    value.unwrap_or_else(|| panic!("{name} is not in\n{metrics}")).parse().expect("a number")
}

#[test]
fn time_in_the_queue_is_not_the_prompts() {
    let running = Setup::built_in(1).start();
    let asked = json!({"prompt": "A fox and a hen", "max_tokens": 2, "ignore_eos": true, "stream": false});
    let queued = |path: &str, body: &Value| {
        let open = begin(&running, "/v1/completions", &long(true), 12);
        let start = Instant::now();
        let answer = running.post(path, body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        drop(open);
        (answer.body, start.elapsed().as_secs_f64() * 1e3)
    };
    let check = |prompt_ms: f64, waited: f64| {
        assert!(prompt_ms > 0.0 && prompt_ms < waited / 3.0, "{prompt_ms} ms of {waited} are the prompt's");
    };
    let (body, waited) = queued("/v1/completions", &asked);
    check(body["timings"]["prompt_ms"].as_f64().expect("a time"), waited);
    let options = json!({"num_predict": 2});
    let asked = json!({"model": "golden", "prompt": "A hen and a fox", "stream": false, "options": options});
    let (body, waited) = queued("/api/generate", &asked);
    check(body["prompt_eval_duration"].as_f64().expect("a time") / 1e6, waited);
    assert!(body["load_duration"].as_f64().expect("a time") / 1e6 > waited / 2.0, "{body}");
    let text = running.get("/metrics").text;
    let sum = |name: &str| seconds(&text, &format!("vllm:{name}_seconds_sum"));
    let (queue, prefill, ttft) =
        (sum("request_queue_time"), sum("request_prefill_time"), sum("time_to_first_token"));
    assert!(prefill < queue / 3.0 && (queue + prefill - ttft).abs() < ttft / 5.0, "{queue} {prefill} {ttft}");
    let llama = seconds(&text, "llamacpp:prompt_seconds_total");
    assert!((llama - prefill).abs() < 1e-6, "{llama} {prefill}");
}

#[test]
fn clients_do_not_choose_the_labels_of_metrics() {
    let mut setup = Setup::built_in(1);
    setup.config.keys = vec![Key::new("ann", "secret")];
    let running = setup.start();
    let key = json!({"authorization": "Bearer secret"});
    let get = |path: &str| running.send(&json!({"method": "GET", "path": path, "headers": key}));
    assert_eq!(running.get("/mine-1").status, 401);
    assert_eq!(get("/mine-2").status, 404);
    assert_eq!(get("/v1/responses/mine-3").status, 404);
    let post = json!({"method": "POST", "path": "/api/blobs/mine-4", "headers": key});
    assert_eq!(running.send(&post).status, 501);
    let text = get("/metrics").text;
    assert!(!text.contains("mine-"), "{text}");
    for line in [
        "chaski_http_requests_total{path=\"other\",status=\"401\"} 1",
        "chaski_http_requests_total{path=\"/v1/responses/{id}\",status=\"404\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn an_answer_that_does_not_begin_in_time_is_refused() {
    let mut setup = Setup::built_in(1);
    setup.config.bounds.request_timeout = Some(Duration::from_micros(1));
    let running = setup.start();
    let refused = running.post("/v1/completions", &long(false));
    assert_eq!((refused.status, refused.body["error"]["code"].as_str()), (408, Some("request_timeout")));
    // The head of a stream may be on its way when the time is over.
    let streamed = running.post("/v1/completions", &long(true));
    assert!(
        streamed.text.contains("request_timeout") && !streamed.text.contains("[DONE]"),
        "{}",
        streamed.text
    );
    wait_until("nothing runs", Duration::from_secs(5), || n_busy(&running) == 0);
    let text = running.get("/metrics").text;
    assert!(text.contains("finished_reason=\"abort\"} 2"), "{text}");
}

#[test]
fn a_key_that_asks_too_much_waits() {
    let mut setup = Setup::built_in(2);
    setup.config.keys = vec![Key::new("a", "a"), Key::new("b", "b")];
    setup.config.bounds.keys.requests_per_minute = Some(2);
    let running = setup.start();
    let ask = |key: &str| {
        let body = json!({"prompt": "A", "max_tokens": 1, "messages": [{"role": "user", "content": "A"}]});
        let headers = json!({"authorization": format!("Bearer {key}")});
        running.send(&json!({"method": "POST", "path": "/v1/completions", "headers": headers, "body": body}))
    };
    assert_eq!((ask("a").status, ask("a").status), (200, 200));
    let refused = ask("a");
    assert_eq!((refused.status, &refused.body["error"]["code"]), (429, &json!("rate_limit_exceeded")));
    let seconds: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=30).contains(&seconds), "{seconds}");
    assert_eq!(ask("b").status, 200, "other keys have their own");
    assert_eq!(ask("c").status, 401);
    let metrics = running.send(&json!({
        "method": "GET", "path": "/metrics", "headers": {"authorization": "Bearer a"},
    }));
    let expected = [("invalid_key".to_owned(), 1), ("key_limit".to_owned(), 1)];
    assert_eq!(refusals(&metrics.text), expected);
}

/// Refused requests by reason.
fn n_refused(running: &Running) -> Vec<(String, u64)> {
    refusals(&running.get("/metrics").text)
}

fn refusals(metrics: &str) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let rest = line.strip_prefix("chaski_rejected_total{reason=\"")?;
        let (reason, n) = rest.split_once("\"} ")?;
        Some((reason.to_owned(), n.parse().ok()?))
    };
    let mut found: Vec<(String, u64)> = metrics.lines().filter_map(line).collect();
    found.sort();
    found
}

#[test]
fn routers_find_what_they_ask_for() {
    let running = Setup::built_in(3).start();
    // A probe without a host, as HAProxy sends it.
    let mut stream = TcpStream::connect(running.address()).expect("the server listens");
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").expect("it takes requests");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    assert!(text.starts_with("HTTP/1.0 200") || text.starts_with("HTTP/1.1 200"), "{text}");
    let info = running.get("/server_info").body;
    assert_eq!((&info["max_running_requests"], &info["tp_size"]), (&json!(3), &json!(1)));
    assert_eq!(running.get("/get_model_info").body["is_generation"], true);
    assert_eq!(running.get("/load").body, json!({"server_load": 0}));
    let load = &running.get("/v1/loads").body["loads"][0];
    assert_eq!((&load["num_running_reqs"], &load["num_waiting_reqs"]), (&json!(0), &json!(0)));
    let rendered = running.post("/v1/completions/render", &json!({"prompt": "Once"})).body;
    let tokens = running.post("/tokenize", &json!({"content": "Once", "add_special": true})).body;
    assert_eq!(rendered["token_ids"], tokens["tokens"]);
    let answer = running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1}));
    assert_eq!(
        (&answer.headers["x-chaski-queue"], answer.headers.contains_key("x-chaski-kv")),
        (&"0".parse().unwrap(), true)
    );
}

#[test]
fn an_operator_ends_the_server() {
    let mut setup = Setup::built_in(1);
    setup.config.keys =
        vec![Key::new("user", "u"), Key::new("operator", "o").level(chaski_server::Level::Admin)];
    setup.config.drain_delay = Duration::ZERO;
    let mut running = setup.start();
    let drain = |running: &Running, key: &str| {
        let headers = json!({"authorization": format!("Bearer {key}")});
        running.send(&json!({"method": "POST", "path": "/admin/drain", "headers": headers})).status
    };
    let props = |key: &str| {
        let headers = json!({"authorization": format!("Bearer {key}")});
        running.send(&json!({"method": "GET", "path": "/props", "headers": headers})).status
    };
    assert_eq!((props("u"), props("o")), (403, 200));
    assert_eq!((drain(&running, "u"), drain(&running, "o")), (403, 200));
    wait_until("it ends", Duration::from_secs(10), || running.has_ended());
    running.stop();
}
