//! Options of operators: proxies, prompts in the log, and details of dialects.

use std::sync::{Arc, Mutex};

use chaski_server::{Entry, Key, ReasoningNames};
use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

/// Keeps the entries of a server's log.
fn logged(setup: &mut Setup) -> Arc<Mutex<Vec<Entry>>> {
    let entries = Arc::<Mutex<Vec<Entry>>>::default();
    let log = entries.clone();
    setup.config.log = Some(Arc::new(move |entry: &Entry| log.lock().unwrap().push(entry.clone())));
    entries
}

fn post(running: &Running, path: &str, headers: Value, body: Value) -> Answer {
    running.send(&json!({"method": "POST", "path": path, "headers": headers, "body": body}))
}

#[test]
fn the_log_has_the_clients_of_trusted_proxies_only() {
    for (trusted, expected) in [(None, "127.0.0.1"), (Some("127.0.0.0/8"), "9.9.9.9")] {
        let mut setup = Setup::built_in(1);
        setup.config.trusted_proxies = trusted.iter().map(|word| word.parse().unwrap()).collect();
        let entries = logged(&mut setup);
        let running = setup.start();
        let headers = json!({"x-forwarded-for": "127.0.0.1, 9.9.9.9"});
        let answer =
            post(&running, "/v1/completions", headers.clone(), json!({"prompt": "A", "max_tokens": 1}));
        assert_eq!(answer.status, 200, "{}", answer.text);
        // A request that was forwarded comes from no program of this machine, whoever forwarded it.
        assert_eq!(post(&running, "/flush_cache", headers, json!({})).status, 403, "{trusted:?}");
        assert_eq!(
            post(&running, "/flush_cache", json!({"forwarded": "for=x"}), json!({})).status == 403,
            trusted.is_none()
        );
        assert_eq!(post(&running, "/flush_cache", json!({}), json!({})).status, 200);
        let local = json!({"x-forwarded-for": "127.0.0.1"});
        assert_eq!(post(&running, "/flush_cache", local, json!({})).status == 200, trusted.is_some());
        drop(running);
        let entries = entries.lock().unwrap();
        let clients: Vec<String> = entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Answered(line) => line.client,
                Entry::Access(line) => line.client,
                _ => None,
            })
            .map(|address| address.to_string())
            .collect();
        assert_eq!(clients[..3], [expected; 3], "{trusted:?}");
        assert_eq!(clients[3..], ["127.0.0.1"; 3], "{trusted:?}");
    }
}

#[test]
fn prompts_are_logged_only_where_that_is_asked_for_and_keys_never() {
    for is_on in [false, true] {
        let mut setup = Setup::built_in(1);
        setup.chat_template("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
        setup.options.pooling = Some(chaski::embedding::Pooling::Mean);
        setup.config.keys = vec![Key::new("ann", "very-secret")];
        setup.config.log_prompts = is_on;
        let entries = logged(&mut setup);
        let running = setup.start();
        let key = json!({"authorization": "Bearer very-secret", "cookie": "very-secret"});
        let messages = json!([{"role": "user", "content": "A private matter"}]);
        for (path, body) in [
            ("/v1/chat/completions", json!({"messages": messages, "max_tokens": 1})),
            (
                "/v1/messages",
                json!({"model": "golden", "messages": messages, "max_tokens": 1, "stream": true}),
            ),
            ("/v1/completions", json!({"prompt": ["A private matter", "And another"], "max_tokens": 1})),
            ("/v1/embeddings", json!({"input": "A private matter"})),
        ] {
            assert_eq!(post(&running, path, key.clone(), body).status, 200, "{path}");
        }
        drop(running);
        let entries = entries.lock().unwrap();
        let said = format!("{entries:?}");
        assert!(!said.contains("very-secret") && said.contains("ann"), "{said}");
        assert_eq!(said.contains("private"), is_on, "{said}");
        let told: Vec<(&str, Option<&str>)> = entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Prompted(prompt) => Some((prompt.text.trim(), prompt.key.as_deref())),
                _ => None,
            })
            .collect();
        let chat = "<user>A private matter";
        // Texts to embed are told by their tokens.
        let all = [chat, chat, "A private matter", "And another", "<|begin|>A private matter"]
            .map(|text| (text, Some("ann")));
        assert_eq!(told, if is_on { all.to_vec() } else { Vec::new() });
    }
}

#[test]
fn the_most_answers_to_a_prompt_are_the_servers() {
    for (max_n, n, status) in [(8, 8, 200), (8, 9, 400), (2, 2, 200), (2, 3, 400), (12, 12, 200)] {
        let mut setup = Setup::built_in(2);
        setup.options.dialects.max_n = max_n;
        let running = setup.start();
        for (path, more) in [
            ("/v1/completions", json!({"prompt": "A"})),
            ("/v1/chat/completions", json!({"messages": [{"role": "user", "content": "Hi"}]})),
        ] {
            let mut body = json!({"n": n, "max_tokens": 1});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let answer = running.post(path, &body);
            assert_eq!(answer.status, status, "{path} {max_n}: {}", answer.text);
            match status {
                200 => assert_eq!(answer.body["choices"].as_array().unwrap().len(), n),
                _ => assert_eq!(answer.body["error"]["param"], "n"),
            }
        }
    }
}

#[test]
fn lax_clients_of_anthropic_get_a_limit_and_a_steady_system_prompt() {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let body = json!({"model": "golden", "messages": messages, "temperature": 0});
    assert_eq!(Setup::built_in(1).start().post("/v1/messages", &body).status, 400);
    let mut setup = Setup::built_in(1);
    setup.chat_template("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
    setup.options.dialects.anthropic_max_tokens = Some(3);
    setup.options.dialects.strip_system(["^x-billing: ", "cch=[0-9a-f]+"]).unwrap();
    assert!(setup.options.dialects.strip_system(["("]).is_err());
    setup.config.log_prompts = true;
    let entries = logged(&mut setup);
    let running = setup.start();
    let answer = running.post("/v1/messages", &body);
    assert_eq!((answer.status, &answer.body["usage"]["output_tokens"]), (200, &json!(3)), "{}", answer.text);
    assert_eq!(answer.body["stop_reason"], "max_tokens");
    let mut counts = Vec::new();
    for system in [
        json!("x-billing: 1\nBe kind.\nsee cch=0a1\nAlways."),
        json!([{"type": "text", "text": "x-billing: 29138"}, {"type": "text", "text": "Be kind.\nAlways."}]),
        json!("Be kind.\nAlways."),
    ] {
        let mut body = body.clone();
        body["system"] = system;
        assert_eq!(running.post("/v1/messages", &body).status, 200);
        counts.push(running.post("/v1/messages/count_tokens", &body).body["input_tokens"].clone());
    }
    assert!(counts[0].is_u64() && counts[0] == counts[1] && counts[1] == counts[2], "{counts:?}");
    drop(running);
    let entries = entries.lock().unwrap();
    let prompt = |entry: &Entry| match entry {
        Entry::Prompted(prompt) => Some(prompt.text.clone()),
        _ => None,
    };
    let prompts: Vec<String> = entries.iter().filter_map(prompt).collect();
    assert_eq!(prompts[1..], ["<system>Be kind.\nAlways.<user>Hi"; 3].map(String::from), "{prompts:?}");
}

#[test]
fn reasoning_has_the_names_that_the_server_chose() {
    for (names, expected) in [
        (ReasoningNames::Both, [true, true]),
        (ReasoningNames::ReasoningContent, [true, false]),
        (ReasoningNames::Reasoning, [false, true]),
    ] {
        let mut setup = Setup::built_in(1);
        setup.chat_template(
            "{# <think> </think> #}{% for m in messages %}{{ m.content }}{% endfor %}<think>\n",
        );
        setup.options.dialects.reasoning_names = names;
        let running = setup.start();
        let mut body =
            json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "temperature": 0});
        let message = running.post("/v1/chat/completions", &body).body["choices"][0]["message"].clone();
        assert_eq!(
            ["reasoning_content", "reasoning"].map(|name| message.get(name).is_some()),
            expected,
            "{message}"
        );
        body["stream"] = true.into();
        let streamed = running.post("/v1/chat/completions", &body);
        for (name, is_there) in ["reasoning_content", "reasoning"].into_iter().zip(expected) {
            let pieces =
                streamed.events.iter().filter_map(|(_, event)| event["choices"][0]["delta"][name].as_str());
            let text: String = pieces.collect();
            assert_eq!(text, if is_there { message[name].as_str().unwrap() } else { "" }, "{names:?}");
        }
        body["include_reasoning"] = false.into();
        let silent = running.post("/v1/chat/completions", &body);
        assert!(!silent.text.contains("\"reasoning"), "{}", silent.text);
    }
}

/// A server whose chats keep their reasoning in the content, or do not, and a chat.
fn reasoning_in_content(is_default: bool) -> (Running, Value) {
    let mut setup = Setup::built_in(1);
    // The built-in model never ends its reasoning: a budget does.
    setup.chat_template("{# <think> </think> #}{% for m in messages %}{{ m.content }}{% endfor %}<think>\n");
    setup.options.dialects.keeps_reasoning = is_default;
    let body = json!({
        "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 30, "temperature": 0, "ignore_eos": true,
        "reasoning_budget": 8,
    });
    (setup.start(), body)
}

#[test]
fn a_server_can_keep_the_reasoning_in_the_content_by_default() {
    let (running, mut body) = reasoning_in_content(true);
    let mut ask = |format: Value| {
        body["reasoning_format"] = format;
        running.post("/v1/chat/completions", &body).body["choices"][0]["message"].take()
    };
    let [silent, none, auto] = [Value::Null, json!("none"), json!("auto")].map(&mut ask);
    assert_eq!(silent, none);
    assert!(silent["content"].as_str().is_some_and(|text| text.contains("</think>")), "{silent}");
    assert!(auto["reasoning_content"].is_string() && silent.get("reasoning_content").is_none(), "{auto}");
}

#[test]
fn reasoning_stays_in_the_content_if_that_is_asked_for() {
    let (running, mut body) = reasoning_in_content(false);
    let ask = |body: &Value| running.post("/v1/chat/completions", body);
    let apart = ask(&body).body["choices"][0]["message"].clone();
    let [reasoning, content] = ["reasoning_content", "content"].map(|name| apart[name].as_str().unwrap());
    body["reasoning_format"] = "none".into();
    let together = ask(&body).body["choices"][0]["message"].clone();
    assert!(together.get("reasoning_content").is_none() && together.get("reasoning").is_none(), "{together}");
    let whole = together["content"].as_str().unwrap();
    assert!(!reasoning.is_empty() && !content.is_empty(), "{apart}");
    let (before, after) = whole.split_once("</think>").expect("the marker");
    assert_eq!((before.trim(), after.trim_start()), (reasoning.trim(), content), "{together}");
    body["stream"] = true.into();
    let streamed = ask(&body);
    let pieces =
        streamed.events.iter().filter_map(|(_, event)| event["choices"][0]["delta"]["content"].as_str());
    assert_eq!(pieces.collect::<String>(), whole);
}

#[test]
fn times_so_far_and_the_progress_of_a_prompt_are_in_streams_that_ask_for_them() {
    let running = Setup::built_in(1).start();
    for path in ["/v1/chat/completions", "/completion"] {
        let asked = json!({
            "prompt": "Once upon a time", "messages": [{"role": "user", "content": "Tell me a story."}],
            "n_predict": 6, "max_tokens": 6, "temperature": 0, "ignore_eos": true,
            "stream": true, "timings_per_token": true, "return_progress": true,
        });
        let answer = post(&running, path, json!({}), asked);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let chunks: Vec<&Value> = answer.events.iter().map(|(_, chunk)| chunk).collect();
        let number = |chunk: &Value, name: &str| chunk["timings"][name].as_f64();
        let so_far: Vec<f64> = chunks.iter().filter_map(|chunk| number(chunk, "predicted_ms")).collect();
        // At the end they are the engine's, which sees a token before the server does.
        let of_engine = so_far.last().expect("chunks with times");
        let of_server: Vec<_> = so_far.iter().take_while(|time| *time != of_engine).collect();
        assert!(of_server.len() > 2, "{path}: {so_far:?}");
        assert!(of_server.is_sorted(), "{path}: {so_far:?}");
        let written = chunks.iter().filter(|chunk| number(chunk, "predicted_n") > Some(1.0));
        let written: Vec<_> = written.collect();
        assert!(written.len() > 2, "{}", answer.text);
        for chunk in written {
            for name in ["prompt_ms", "predicted_ms", "predicted_per_second"] {
                assert!(number(chunk, name) > Some(0.0), "{path}: {name} of {chunk}");
            }
        }
        let progress: Vec<&Value> =
            chunks.iter().map(|chunk| &chunk["prompt_progress"]).filter(|p| p.is_object()).collect();
        let last = progress.last().expect("the prompt has run");
        assert!(progress.len() > 1 && last["processed"] == last["total"], "{path}: {progress:?}");
    }
}
