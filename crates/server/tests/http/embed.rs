//! Embeddings of a server that answers.

use std::thread;
use std::time::Duration;

use chaski::embedding::Pooling;
use serde_json::{Value, json};

use crate::operation::{begin, long, n_busy, wait_until};
use crate::serve::{Running, Setup};

const LIMIT: Duration = Duration::from_secs(20);

fn server(n_seq: u32, pooling: Option<Pooling>) -> Running {
    let mut setup = Setup::built_in(n_seq);
    setup.options.pooling = pooling;
    setup.max_waiting = 1;
    setup.start()
}

/// Prompts that wait, as the metrics have it.
fn n_waiting(running: &Running) -> usize {
    let metrics = running.get("/metrics").text;
    let line = metrics.lines().find(|line| line.starts_with("vllm:num_requests_waiting"));
    let value = line.and_then(|line| line.rsplit(' ').next()).expect("a value");
    value.parse::<f64>().expect("a number") as usize
}

/// Texts of different lengths.
fn texts(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("The fox number {i} {}", "saw a dog. ".repeat(1 + i % 5))).collect()
}

#[test]
fn texts_are_as_long_as_a_prompt_may_be() {
    let mut setup = Setup::built_in(1);
    setup.options.pooling = Some(Pooling::Mean);
    setup.config.bounds.max_prompt = Some(20);
    let running = setup.start();
    for path in ["/v1/embeddings", "/embedding", "/api/embed"] {
        let embed = |text: &str| running.post(path, &json!({"model": "golden", "input": ["A fox.", text]}));
        assert_eq!(embed("A dog.").status, 200, "{path}");
        let refused = embed(&"dog ".repeat(40));
        assert!(
            refused.status == 400 && refused.text.contains("> 20 maximum of this server"),
            "{}",
            refused.text
        );
    }
}

#[test]
fn ollamas_embeddings_name_their_model_and_say_how_long_it_stays() {
    let running = Setup::offering(&["a"]).start();
    for (path, name) in [("/api/embed", "input"), ("/api/embeddings", "prompt")] {
        let unnamed = running.post(path, &json!({name: "A fox."}));
        assert_eq!(
            (unnamed.status, unnamed.body["error"].as_str()),
            (400, Some("`model` is missing")),
            "{path}"
        );
        let wrong = running.post(path, &json!({"model": "a", name: "A fox.", "keep_alive": "soon"}));
        assert_eq!(wrong.status, 400, "{}", wrong.text);
        let embedded = running.post(path, &json!({"model": "a", name: "A fox.", "keep_alive": 0}));
        assert_eq!(embedded.status, 200, "{}", embedded.text);
        if name == "input" {
            let nanos = |name: &str| embedded.body[name].as_u64().expect("a time");
            // It was loaded for this.
            assert!(
                (100_000..nanos("total_duration")).contains(&nanos("load_duration")),
                "{}",
                embedded.text
            );
        }
        wait_until("it leaves", LIMIT, || running.get("/api/ps").body["models"] == json!([]));
    }
}

#[test]
fn texts_wait_no_longer_than_answers() {
    let mut setup = Setup::built_in(1);
    setup.options.pooling = Some(Pooling::Mean);
    setup.config.bounds.max_queue_time = Some(Duration::from_millis(100));
    setup.config.bounds.max_queued_tokens = Some(30);
    let running = setup.start();
    let busy = begin(&running, "/v1/completions", &long(true), 12);
    let waited = running.post("/v1/embeddings", &json!({"input": "A fox."}));
    assert_eq!(
        (waited.status, &waited.body["error"]["code"]),
        (429, &json!("server_overloaded")),
        "{}",
        waited.text
    );
    assert!(waited.text.contains("waited for 0.1 seconds"), "{}", waited.text);
    // One request is taken whatever its length; it waits, and others are too many beside it.
    let texts: Vec<String> = (0..8).map(|i| format!("Fox number {i} saw a dog.")).collect();
    let statuses = thread::scope(|scope| {
        let asked =
            [0, 1].map(|_| scope.spawn(|| running.post("/v1/embeddings", &json!({"input": texts})).text));
        asked.map(|one| one.join().expect("no client panics"))
    });
    assert!(statuses.iter().any(|text| text.contains("more than 30")), "{statuses:?}");
    drop(busy);
    wait_until("there is room", LIMIT, || n_busy(&running) == 0);
    assert_eq!(running.post("/v1/embeddings", &json!({"input": texts})).status, 200);
}

#[test]
fn texts_run_beside_answers_and_neither_changes_the_other() {
    let running = server(3, Some(Pooling::Mean));
    let texts = texts(9);
    let embed = |input: Value| {
        let answer = running.post("/v1/embeddings", &json!({"input": input}));
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.body
    };
    let tell = || {
        let body =
            json!({"prompt": "Once upon a time", "max_tokens": 60, "temperature": 0, "ignore_eos": true});
        running.post("/v1/completions", &body).body["choices"][0]["text"].clone()
    };
    let alone: Vec<Value> = texts.iter().map(|text| embed(json!(text))["data"][0].take()).collect();
    let story = tell();
    thread::scope(|scope| {
        let told = scope.spawn(tell);
        // More texts than may wait: they are one request.
        for _ in 0..2 {
            let found = embed(json!(texts));
            for (i, alone) in alone.iter().enumerate() {
                assert_eq!(
                    (&found["data"][i]["embedding"], found["data"][i]["index"].as_u64()),
                    (&alone["embedding"], Some(i as u64))
                );
            }
        }
        assert_eq!(told.join().expect("an answer"), story);
    });
    let other = running.post("/api/embed", &json!({"model": "x", "input": texts[..2]}));
    assert_eq!(other.headers["x-chaski-model"], "golden");
    let other = other.body;
    assert_eq!(other["embeddings"], json!([alone[0]["embedding"], alone[1]["embedding"]]));
    let other = running.post("/embedding", &json!({"content": texts[3]})).body;
    assert_eq!(other[0]["embedding"], json!([alone[3]["embedding"]]));
    let metrics = running.get("/metrics").text;
    assert!(
        metrics.lines().any(|line| line.starts_with("vllm:prompt_tokens_total") && !line.ends_with(" 0"))
    );
}

#[test]
fn a_client_that_leaves_ends_its_texts() {
    let running = server(2, Some(Pooling::Mean));
    let many = json!({"input": texts(2000)});
    let reader = begin(&running, "/v1/embeddings", &many, 0);
    wait_until("they wait", LIMIT, || n_waiting(&running) > 1000);
    // An answer comes between the texts.
    let answer = running.post("/v1/completions", &json!({"prompt": "Once", "max_tokens": 3}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(n_waiting(&running) > 100, "the texts have not ended");
    drop(reader);
    wait_until("they end", LIMIT, || n_waiting(&running) + n_busy(&running) == 0);
}

#[test]
fn a_model_without_a_way_of_pooling_says_so() {
    let running = server(1, None);
    let answer = running.post("/v1/embeddings", &json!({"input": "Hi"}));
    assert_eq!((answer.status, &answer.body["error"]["type"]), (501, &json!("not_supported_error")));
    let message = answer.body["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("`llama.pooling_type`") && message.contains("--pooling"), "{message}");
    let models = running.get("/v1/models").body;
    assert_eq!(models["data"][0]["capabilities"], json!(["completion"]));
}
