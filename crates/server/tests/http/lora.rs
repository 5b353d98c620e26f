//! LoRAs of single requests.

use std::thread;
use std::time::Duration;

use chaski::gguf::{GgmlType, GgufWriter};
use chaski_server::{Key, Level};
use serde_json::{Value, json};

use crate::operation::{begin, n_busy, wait_until};
use crate::serve::{Running, Setup};

/// A LoRA of an output of attention in the built-in model; the seed decides its values.
fn file(seed: u32) -> &'static [u8] {
    let mut writer = GgufWriter::new();
    for (key, value) in [
        ("general.architecture", "llama"),
        ("general.type", "adapter"),
        ("adapter.type", "lora"),
        ("adapter.lora.task_name", "tales"),
    ] {
        writer.set(key, value).expect("a key");
    }
    let name = |half: &str| format!("blk.1.attn_output.weight.lora_{half}");
    writer.tensor(&name("a"), &[256, 2], GgmlType::F32).expect("a tensor");
    writer.tensor(&name("b"), &[2, 256], GgmlType::F32).expect("a tensor");
    let mut data = writer.begin(Vec::new()).expect("a head in memory");
    for half in ["a", "b"] {
        let value = |i: u32| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0;
        let bytes: Vec<u8> = (0..512).map(|i| value(i + 1000 * seed)).flat_map(f32::to_le_bytes).collect();
        data.write(&name(half), &bytes).expect("data in memory");
    }
    data.finish().expect("all data were written").leak()
}

fn setup(n_seq: u32) -> Setup {
    let mut setup = Setup::built_in(n_seq);
    setup.options.pooling = Some(chaski::embedding::Pooling::Mean);
    setup.loras = vec![("lora/first.gguf".into(), file(1), 0.0), ("second.gguf".into(), file(2), 0.0)];
    setup
}

/// The text of a greedy answer.
fn tell(running: &Running, more: &Value) -> String {
    let mut body = json!({"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let answer = running.post("/v1/completions", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body["choices"][0]["text"].as_str().expect("a text").to_owned()
}

fn scale(scale: f64) -> Value {
    json!({"lora": [{"id": 0, "scale": scale}]})
}

#[test]
fn a_lora_that_is_not_applied_has_its_own_scale_when_it_is_named() {
    let mut setup = setup(1);
    setup.loras[0].2 = 0.5;
    setup.options.lora_init_without_apply = true;
    let running = setup.start();
    assert_eq!(running.get("/lora-adapters").body[0]["scale"], 0.0);
    let [plain, half] = [scale(0.0), scale(0.5)].map(|scale| tell(&running, &scale));
    assert_ne!(plain, half);
    assert_eq!(tell(&running, &json!({})), plain);
    assert_eq!(tell(&running, &json!({"model": "first"})), half);
}

/// Texts of several scales at once are those of each alone, in any order of arrival, and while others leave.
#[test]
fn requests_of_several_scales_do_not_change_each_other() {
    let running = setup(4).start();
    let mores = [scale(0.0), scale(0.5), scale(1.0), json!({}), json!({"model": "second"})];
    let alone = mores.clone().map(|more| tell(&running, &more));
    assert_eq!(alone[0], alone[3], "they are off by default");
    let differ = [0, 1, 2, 4];
    assert!(differ.iter().all(|i| differ.iter().all(|j| i == j || alone[*i] != alone[*j])), "{alone:?}");
    for turn in 0..6 {
        thread::scope(|scope| {
            for i in 0..10 {
                let nth = (i * (1 + turn % 4) + turn) % mores.len();
                let (running, more, expected) = (&running, &mores[nth], &alone[nth]);
                if i % 5 == 4 {
                    // It leaves after some tokens.
                    scope.spawn(move || {
                        let mut body =
                            json!({"prompt": "Once upon a time", "max_tokens": 400, "stream": true});
                        body.as_object_mut()
                            .expect("an object")
                            .extend(more.as_object().expect("one").clone());
                        drop(begin(running, "/v1/completions", &body, 8 + i));
                    });
                }
                scope.spawn(move || assert_eq!(tell(running, more), *expected, "{more}"));
            }
        });
    }
    wait_until("all end", Duration::from_secs(10), || n_busy(&running) == 0);
}

#[test]
fn all_dialects_take_loras() {
    let running = setup(2).start();
    let messages = json!([{"role": "user", "content": "Once upon a time"}]);
    let base = json!({"model": "golden", "temperature": 0, "max_tokens": 16, "n_predict": 16, "prompt": "Once upon a time", "messages": messages});
    let field = |path: &str, more: Value| {
        let mut body = base.clone();
        body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        if path.starts_with("/api") {
            body["options"] = json!({"temperature": 0, "num_predict": 16});
            body["stream"] = false.into();
        }
        if path.ends_with("responses") {
            body["input"] = "Once upon a time".into();
        }
        let answer = running.post(path, &body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let pointers =
            ["/choices/0/text", "/choices/0/message/content", "/content/0/text", "/content", "/response"];
        let pointers = pointers.into_iter().chain(["/message/content", "/output/0/content/0/text"]);
        let text = pointers.filter_map(|at| answer.body.pointer(at)).find(|value| value.is_string()).cloned();
        (text.unwrap_or_else(|| panic!("{path}: {}", answer.text)), answer.body)
    };
    for path in [
        "/v1/completions",
        "/v1/chat/completions",
        "/completion",
        "/v1/messages",
        "/api/generate",
        "/api/chat",
        "/v1/responses",
    ] {
        let plain = field(path, json!({"model": "golden"})).0;
        let (scaled, _) = field(path, scale(1.0));
        let (named, body) = field(path, json!({"model": "golden:first"}));
        assert_ne!(plain, scaled, "{path}");
        assert_eq!(scaled, named, "{path}: its name means the scale 1");
        if body["model"].is_string() {
            assert_eq!(body["model"], "golden:first", "{path}");
        }
    }
    let told = field("/completion", scale(0.5)).1["generation_settings"]["lora"].clone();
    assert_eq!(told, json!([{"id": 0, "scale": 0.5}, {"id": 1, "scale": 0.0}]));
    let embed = |more: Value| {
        let mut body = json!({"input": "Once upon a time"});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        running.post("/v1/embeddings", &body).body["data"][0]["embedding"].clone()
    };
    assert_eq!(embed(scale(0.0)), embed(json!({})));
    assert_eq!(embed(scale(1.0)), embed(json!({"model": "first"})));
    assert_ne!(embed(scale(1.0)), embed(json!({})));
    let echo = |more: Value| {
        let mut body = json!({"prompt": "Once upon a time", "max_tokens": 0, "echo": true, "logprobs": 1});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        running.post("/v1/completions", &body).body["choices"][0]["logprobs"]["token_logprobs"].clone()
    };
    assert_ne!(echo(scale(1.0)), echo(scale(0.0)), "prompts run with the scales, too");
}

#[test]
fn scales_in_force_are_those_of_an_operator() {
    let mut setup = setup(2);
    setup.config.keys = vec![Key::new("user", "u"), Key::new("operator", "o").level(Level::Admin)];
    let running = setup.start();
    let send = |key: &str, method: &str, body: Value| {
        let headers = json!({"authorization": format!("Bearer {key}")});
        running.send(&json!({"method": method, "path": "/lora-adapters", "headers": headers, "body": body}))
    };
    let tell = |more: Value| {
        let mut body = json!({"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        let headers = json!({"authorization": "Bearer u"});
        let request = json!({"method": "POST", "path": "/completion", "headers": headers, "body": body});
        running.send(&request).body["content"].clone()
    };
    let (plain, scaled) = (tell(json!({})), tell(scale(1.0)));
    assert_eq!(send("u", "POST", json!([{"id": 0, "scale": 1.0}])).status, 403);
    assert_eq!(tell(json!({})), plain);
    assert_eq!(send("o", "POST", json!([{"id": 0, "scale": 1.0}])).body, json!({"success": true}));
    assert_eq!(
        (tell(json!({})), tell(scale(0.0)), tell(json!({"lora": []}))),
        (scaled, plain.clone(), plain.clone())
    );
    let list = send("u", "GET", Value::Null).body;
    assert_eq!(
        list,
        json!([
            {"id": 0, "path": "lora/first.gguf", "scale": 1.0, "task_name": "tales", "prompt_prefix": ""},
            {"id": 1, "path": "second.gguf", "scale": 0.0, "task_name": "tales", "prompt_prefix": ""},
        ])
    );
    // A list that cannot be used changes nothing.
    for wrong in [json!([{"id": 0, "scale": 0}, {"id": 2, "scale": 1}]), json!({"id": 0}), json!([{"id": 0}])]
    {
        let refused = send("o", "POST", wrong);
        assert_eq!((refused.status, &refused.body["error"]["code"]), (400, &json!(400)), "{}", refused.text);
    }
    assert_eq!(send("u", "GET", Value::Null).body, list);
    assert_eq!(send("o", "POST", json!([])).status, 200);
    assert_eq!(tell(json!({})), plain, "those that are not named have 0");
}

#[test]
fn loras_are_models_of_the_list_and_of_metrics() {
    let running = setup(1).start();
    let list = running.get("/v1/models").body["data"].clone();
    let ids: Vec<&Value> = list.as_array().expect("a list").iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["golden", "golden:first", "golden:second"]);
    for lora in [&list[1], &list[2]] {
        assert_eq!((&lora["parent"], &lora["aliases"]), (&json!("golden"), &json!([])));
        // Facts of the base.
        for name in ["object", "created", "owned_by", "status", "max_model_len", "meta", "capabilities"] {
            assert!(!lora[name].is_null(), "{name}: {lora}");
            assert_eq!(lora[name], list[0][name], "{name}");
        }
    }
    assert_eq!((&list[1]["path"], &list[2]["path"]), (&json!("lora/first.gguf"), &json!("second.gguf")));
    for name in ["first", "golden:first"] {
        assert_eq!(running.get(&format!("/v1/models/{name}")).body, list[1]);
    }
    assert_eq!(running.get("/v1/models/third").status, 404);
    let body = |model: &str| json!({"model": model, "prompt": "Once", "max_tokens": 480, "temperature": 0, "ignore_eos": true, "stream": true});
    let runs = begin(&running, "/v1/completions", &body("first"), 12);
    let waits = begin(&running, "/v1/completions", &body("second"), 0);
    let line = || {
        let text = running.get("/metrics").text;
        text.lines().find(|line| line.starts_with("vllm:lora_requests_info{")).expect("a line").to_owned()
    };
    let expected = "max_lora=\"2\",running_lora_adapters=\"first\",waiting_lora_adapters=\"second\"";
    wait_until("one waits", Duration::from_secs(10), || line().contains(expected));
    drop((runs, waits));
    let expected = "running_lora_adapters=\"\",waiting_lora_adapters=\"\"";
    wait_until("both end", Duration::from_secs(10), || line().contains(expected));
}

#[test]
fn loras_that_are_not_there_are_refused() {
    let running = setup(1).start();
    let ask = |running: &Running, lora: Value| {
        let answer = running.post("/v1/completions", &json!({"prompt": "A", "max_tokens": 1, "lora": lora}));
        (answer.status, answer.body["error"]["param"].clone(), answer.text)
    };
    for (lora, param) in [
        (json!([{"id": 2, "scale": 1}]), "lora[0].id"),
        (json!([{"id": 0, "scale": 1}, {"id": -1, "scale": 1}]), "lora[1].id"),
        (json!([{"id": 0, "scale": "1"}]), "lora[0].scale"),
        (json!([{"id": 0, "scale": 1e300}]), "lora[0].scale"),
        (json!({"0": 1}), "lora"),
    ] {
        let (status, found, text) = ask(&running, lora);
        assert_eq!((status, found), (400, json!(param)), "{text}");
    }
    let raw = |scale: &str| format!("{{\"prompt\": \"A\", \"lora\": [{{\"id\": 0, \"scale\": {scale}}}]}}");
    for scale in ["1e999", "NaN", "Infinity"] {
        let request = json!({"method": "POST", "path": "/completion", "raw_body": raw(scale)});
        assert_eq!(running.send(&request).status, 400, "{scale}");
    }
    let plain = Setup::built_in(1).start();
    let (status, param, text) = ask(&plain, json!([{"id": 0, "scale": 1}]));
    assert_eq!((status, param), (400, json!("lora[0].id")));
    assert!(text.contains("the model has no LoRAs"), "{text}");
    assert_eq!(ask(&plain, json!([])).0, 200);
    assert_eq!(plain.get("/lora-adapters").body, json!([]));
    assert!(plain.get("/metrics").text.contains("max_lora=\"0\""));
}
