//! Models that are loaded when requests ask for them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use chaski_server::{Key, Level};
use serde_json::{Value, json};

use crate::clients::is_full;
use crate::serve::{Running, Setup};

fn ask(running: &Running, model: &str) -> crate::serve::Answer {
    let body = json!({"model": model, "prompt": "Once upon", "max_tokens": 8, "temperature": 0});
    running.post("/v1/completions", &body)
}

/// The state of a model in the list.
fn status(running: &Running, model: &str) -> Value {
    running.get(&format!("/v1/models/{model}")).body["status"].clone()
}

fn wait_for(running: &Running, model: &str, state: &str) {
    let start = Instant::now();
    while status(running, model)["value"] != state {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{model} is not {state}: {}",
            status(running, model)
        );
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn many_clients_share_the_room_of_one_model() {
    let running = Setup::offering(&["a", "b", "c"]).start();
    assert_eq!(running.get("/health").status, 200, "nothing is missing");
    assert_eq!(status(&running, "a")["value"], "unloaded");
    let texts: Vec<Value> = thread::scope(|scope| {
        let asked: Vec<_> = (0..12)
            .map(|i| {
                let running = &running;
                scope.spawn(move || {
                    let answer = ask(running, ["a", "b", "c"][i % 3]);
                    assert_eq!((answer.status, &answer.body["model"]), (200, &json!(["a", "b", "c"][i % 3])));
                    answer.body["choices"][0]["text"].clone()
                })
            })
            .collect();
        asked.into_iter().map(|one| one.join().expect("no client panics")).collect()
    });
    assert!(texts.windows(2).all(|two| two[0] == two[1]), "{texts:?}");
    let all = running.get("/v1/models").body;
    let is_loaded = |model: &&Value| model["status"]["value"] == "loaded";
    assert_eq!(all["data"].as_array().unwrap().iter().filter(is_loaded).count(), 1, "{all}");
}

#[test]
fn requests_name_their_model() {
    let running = Setup::offering(&["a", "b"]).start();
    let unnamed = running.post("/v1/completions", &json!({"prompt": "A"}));
    assert_eq!((unnamed.status, &unnamed.body["error"]["param"]), (400, &json!("model")));
    let unknown = ask(&running, "x");
    assert_eq!((unknown.status, &unknown.body["error"]["code"]), (404, &json!("model_not_found")));
    let router = running.get("/props").body;
    assert_eq!((&router["role"], &router["max_instances"]), (&json!("router"), &json!(1)));
    assert_eq!(running.get("/props?model=a").body["is_sleeping"], true);
    assert_eq!(running.get("/slots?model=a").body, json!([]));
    assert_eq!(status(&running, "a")["value"], "unloaded", "questions load nothing");
}

#[test]
fn an_operator_loads_and_frees_models() {
    let mut setup = Setup::offering(&["a", "b"]);
    setup.config.keys = vec![Key::new("user", "u"), Key::new("operator", "o").level(Level::Admin)];
    setup.config.autoload = false;
    let running = setup.start();
    let send = |key: &str, path: &str, body: Value| {
        let headers = json!({"authorization": format!("Bearer {key}")});
        let method = if body.is_null() { "GET" } else { "POST" };
        running.send(&json!({"method": method, "path": path, "headers": headers, "body": body}))
    };
    let prompt = json!({"model": "a", "prompt": "Once", "max_tokens": 2});
    assert_eq!(send("u", "/v1/completions", prompt.clone()).status, 400, "it is not loaded");
    let refused = send("u", "/models/load", json!({"model": "a"}));
    assert_eq!((refused.status, &refused.body["error"]["type"]), (403, &json!("permission_error")));
    assert_eq!(send("o", "/models/load", json!({"model": "a"})).body, json!({"success": true}));
    let start = Instant::now();
    while send("u", "/v1/completions", prompt.clone()).status != 200 {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(send("u", "/models/unload", json!({"model": "a"})).status, 403);
    assert_eq!(send("u", "/api/chat", json!({"model": "a", "keep_alive": 0})).status, 403);
    assert_eq!(send("o", "/models/unload", json!({"model": "a"})).status, 200);
    assert_eq!(send("o", "/models/unload", json!({"model": "x"})).status, 404);
    while send("u", "/api/ps", Value::Null).body["models"] != json!([]) {
        assert!(start.elapsed() < Duration::from_secs(40));
    }
}

/// The sum of the values of a metric, if it is there.
fn metric(running: &Running, name: &str) -> Option<f64> {
    let metrics = running.get("/metrics").text;
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} ")));
    let values: Vec<f64> = lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

#[test]
fn measurements_of_a_model_go_with_it_and_counts_go_on() {
    let running = Setup::offering(&["a"]).start();
    let gauges = [
        "chaski_model_loaded",
        "vllm:num_requests_running",
        "vllm:cache_config_info",
        "vllm:lora_requests_info",
    ];
    let mut n_step = 0.0;
    for _ in 0..2 {
        assert_eq!(ask(&running, "a").status, 200);
        assert!(gauges.iter().all(|name| metric(&running, name).is_some()));
        let now = metric(&running, "llamacpp:n_decode_total").expect("a count");
        assert!(now >= n_step + 8.0, "{now} after {n_step}");
        n_step = now;
        assert_eq!(running.post("/models/unload", &json!({"model": "a"})).status, 200);
        wait_for(&running, "a", "unloaded");
        assert_eq!(gauges.map(|name| metric(&running, name)), [None; 4]);
        assert_eq!(metric(&running, "llamacpp:n_decode_total"), Some(n_step));
    }
}

#[test]
fn changes_are_events() {
    let running = Setup::offering(&["a", "broken"]).start();
    let mut stream = TcpStream::connect(running.address()).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time can be set");
    write!(stream, "GET /models/sse HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it takes requests");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("it goes on"));
    // The head ends with an empty line: from here on nothing is missed.
    assert!(lines.by_ref().any(|line| line.is_empty()));
    let start = Instant::now();
    // Signs of life come every 15 seconds, so the limit is seen.
    let mut wait = |model: &str, is: &dyn Fn(&Value) -> bool| {
        for line in lines.by_ref() {
            assert!(start.elapsed() < Duration::from_secs(60), "no event of {model}");
            let data = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok());
            if data.is_some_and(|event| event["model"] == model && is(&event["data"])) {
                return;
            }
        }
        panic!("the stream ended before an event of {model}");
    };
    assert_eq!(ask(&running, "a").status, 200);
    wait("a", &|data| data["status"] == "loaded");
    let freed = running.post("/api/generate", &json!({"model": "a", "keep_alive": 0}));
    assert_eq!((&freed.body["done_reason"], &freed.body["response"]), (&json!("unload"), &json!("")));
    wait("a", &|data| data["status"] == "unloaded");
    let failed = ask(&running, "broken");
    assert_eq!((failed.status, &failed.body["error"]["code"]), (500, &json!("internal")));
    assert!(
        failed.body["error"]["message"].as_str().unwrap().contains("its file is broken"),
        "{}",
        failed.body
    );
    wait("broken", &|data| data["failed"] == true);
    assert_eq!(ask(&running, "broken").status, 500, "it is not tried again so soon");
}

#[test]
fn a_model_leaves_after_its_time() {
    let running = Setup::offering(&["a"]).start();
    let body = json!({"model": "a", "messages": [], "keep_alive": "100ms"});
    assert_eq!(running.post("/api/chat", &body).body["done_reason"], "load");
    wait_for(&running, "a", "unloaded");
    let stays = json!({"model": "a", "keep_alive": -1, "messages": []});
    assert_eq!(running.post("/api/chat", &stays).status, 200);
    let expires = running.get("/api/ps").body["models"][0]["expires_at"].clone();
    assert!(expires.as_str().is_some_and(|time| time > "2100"), "{expires}");
    // Without a name, the only model answers.
    assert_eq!(running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1})).status, 200);
}

/// A server of four models without a limit of their number, with this budget.
fn with_budget(n_byte: Option<u64>) -> Running {
    let mut setup = Setup::offering(&["a", "b", "c", "d"]);
    (setup.config.models_max, setup.config.models_bytes) = (None, n_byte);
    setup.start()
}

/// Models that are loaded.
fn loaded(running: &Running) -> Vec<String> {
    let listed = running.get("/api/ps").body["models"].take();
    let names = listed.as_array().expect("a list").iter().map(|model| model["name"].as_str());
    names.map(|name| name.expect("a name").trim_end_matches(":latest").to_owned()).collect()
}

fn n_byte(running: &Running, model: &str) -> u64 {
    let listed = running.get("/api/ps").body["models"].take();
    let is_it = |listed: &&Value| listed["name"].as_str().is_some_and(|name| name.starts_with(model));
    listed.as_array().expect("a list").iter().find(is_it).expect("it is loaded")["size_vram"]
        .as_u64()
        .expect("bytes")
}

#[test]
fn on_a_cpu_there_is_no_budget() {
    let running = with_budget(None);
    for model in ["a", "b", "c", "d"] {
        assert_eq!(ask(&running, model).status, 200);
    }
    assert_eq!(loaded(&running), ["a", "b", "c", "d"]);
    assert_eq!(running.get("/props").body["max_memory"], Value::Null);
    assert_eq!(metric(&running, "chaski_models_memory_bytes"), None);
}

#[test]
fn a_budget_frees_the_model_that_was_not_used_for_longest_and_never_one_that_stays() {
    let each = {
        let running = with_budget(None);
        assert_eq!(ask(&running, "a").status, 200);
        n_byte(&running, "a")
    };
    let budget = each * 5 / 2;
    let running = with_budget(Some(budget));
    assert_eq!(running.get("/props").body["max_memory"], budget);
    assert_eq!(metric(&running, "chaski_models_memory_bytes"), Some(budget as f64));
    for model in ["a", "b", "a", "c"] {
        assert_eq!(ask(&running, model).status, 200);
    }
    // Its caches made c larger than its weights told; b was not used for longest.
    wait_for(&running, "b", "unloaded");
    assert_eq!(loaded(&running), ["a", "c"]);
    let stays = json!({"model": "a", "messages": [], "keep_alive": -1});
    assert_eq!(running.post("/api/chat", &stays).status, 200);
    for (model, leaves) in [("b", "c"), ("d", "b")] {
        assert_eq!(ask(&running, model).status, 200);
        wait_for(&running, leaves, "unloaded");
        assert_eq!(loaded(&running), ["a", model]);
    }
    let stays = json!({"model": "d", "messages": [], "keep_alive": -1});
    assert_eq!(running.post("/api/chat", &stays).status, 200);
    let refused = ask(&running, "c");
    assert_eq!((refused.status, &refused.body["error"]["code"]), (500, &json!("out_of_memory")));
    let message = refused.body["error"]["message"].as_str().expect("a message");
    assert!(message.contains(&budget.to_string()), "{message}");
    assert_eq!(
        (refused.headers.contains_key("retry-after"), loaded(&running)),
        (true, vec!["a".to_owned(), "d".to_owned()])
    );
    assert_eq!((ask(&running, "a").status, ask(&running, "d").status), (200, 200), "they are still served");
}

/// For full runs: models take a while to load on a GPU where there is none.
#[test]
fn the_memory_of_a_gpu_is_a_budget() {
    if !is_full() {
        return;
    }
    let mut setup = Setup::built_in(1);
    setup.gpu = Some(Arc::new(OnceLock::new()));
    let kept = setup.gpu.clone().expect("it was set");
    setup.config.offers = Some(Arc::new(|| vec![crate::serve::offer("other")]));
    setup.config.any_model = Some(false);
    let running = setup.start();
    let memory = kept.get().and_then(|gpu| gpu.memory()).expect("Vulkan tells it");
    // Drivers estimate it anew each time.
    let found = metric(&running, "chaski_models_memory_bytes").expect("a budget");
    let most = 0.9 * memory.n_byte as f64;
    assert!((0.1 * most..=most).contains(&found), "{found} of {memory:?}");
    assert_eq!(ask(&running, "other").status, 200, "a model on the CPU takes nothing of it");
    assert_eq!(loaded(&running), ["other", "golden"]);
}
