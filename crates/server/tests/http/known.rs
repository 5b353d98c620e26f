//! Fields that the server knows: those that it cannot honour, and values of wrong types, are named.

use serde_json::{Value, json};

use crate::serve::{Running, Setup};

/// A small body of each endpoint.
fn body(path: &str) -> Value {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    match path {
        "/v1/chat/completions" => json!({"messages": messages, "max_tokens": 1}),
        "/v1/messages" => json!({"model": "golden", "messages": messages, "max_tokens": 1}),
        "/v1/embeddings" => json!({"input": "Hi"}),
        "/tokenize" => json!({"content": "Hi"}),
        _ => json!({"prompt": "Hi", "max_tokens": 1}),
    }
}

fn ask(running: &Running, path: &str, more: &Value) -> (u16, Value) {
    let mut body = body(path);
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let answer = running.post(path, &body);
    (answer.status, answer.body)
}

const CHAT: &str = "/v1/chat/completions";

#[test]
fn fields_that_are_not_honoured_are_named() {
    let running = Setup::built_in(1).start();
    let message = |more: Value| {
        let mut message = json!({"role": "user", "content": "Hi"});
        message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"messages": [message]})
    };
    let call = json!({"id": 5, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let format = |more: Value| {
        let mut inner = json!({"schema": {"type": "string"}});
        inner.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"response_format": {"type": "json_schema", "json_schema": inner}})
    };
    for (path, more, param) in [
        (CHAT, json!({"reasoning_format": "deepseek-legacy"}), "reasoning_format"),
        (CHAT, json!({"reasoning_format": 1}), "reasoning_format"),
        (CHAT, json!({"reasoning_budget": -2}), "reasoning_budget"),
        (CHAT, json!({"reasoning_budget": "low"}), "reasoning_budget"),
        (CHAT, json!({"cache_prompt": "yes"}), "cache_prompt"),
        (CHAT, json!({"sse_ping_interval": "1"}), "sse_ping_interval"),
        (CHAT, json!({"modalities": ["text", "audio"]}), "modalities"),
        (CHAT, json!({"audio": {"voice": "a"}}), "audio"),
        (CHAT, json!({"web_search_options": {}}), "web_search_options"),
        (CHAT, json!({"functions": [{"name": "f"}]}), "functions"),
        (CHAT, json!({"options": {"num_ctx": 513}}), "options.num_ctx"),
        (CHAT, json!({"n_keep": "all"}), "n_keep"),
        (CHAT, json!({"n_probs": 21}), "n_probs"),
        (CHAT, format(json!({"strict": "yes"})), "response_format.json_schema.strict"),
        (CHAT, format(json!({"name": 5})), "response_format.json_schema.name"),
        (CHAT, message(json!({"name": 5})), "messages[0].name"),
        (CHAT, message(json!({"tool_call_id": 5})), "messages[0].tool_call_id"),
        (CHAT, message(json!({"reasoning_content": []})), "messages[0].reasoning_content"),
        (CHAT, message(json!({"tool_calls": [call]})), "messages[0].tool_calls[0].id"),
        (CHAT, json!({"logit_bias": {"5": 1000}}), "logit_bias"),
        (CHAT, json!({"logit_bias": {"99999": 1}}), "logit_bias"),
        (CHAT, json!({"structured_outputs": {"regex": 5}}), "structured_outputs.regex"),
        ("/v1/completions", json!({"n": 2, "best_of": 3}), "best_of"),
        ("/v1/completions", json!({"prompt": [99999]}), "prompt"),
        ("/completion", json!({"n": 2}), "n"),
        ("/completion", json!({"n_cmpl": 2}), "n_cmpl"),
        ("/tokenize", json!({"model": 5}), "model"),
        ("/v1/embeddings", json!({"model": 5}), "model"),
        ("/v1/embeddings", json!({"cache_salt": ""}), "cache_salt"),
        ("/v1/embeddings", json!({"cache_salt": 5}), "cache_salt"),
    ] {
        let (status, body) = ask(&running, path, &more);
        assert_eq!((status, &body["error"]["param"]), (400, &json!(param)), "{path} {more}: {body}");
    }
    for (path, more) in [
        (CHAT, json!({"reasoning_format": "auto", "reasoning_budget": -1, "cache_prompt": false})),
        (CHAT, json!({"modalities": ["text"], "audio": null, "options": {"num_ctx": 512}})),
        (CHAT, json!({"reasoning_budget": 100})),
        (CHAT, json!({"sse_ping_interval": 5, "n_keep": -1, "n_probs": 3})),
        (CHAT, format(json!({"strict": true, "name": "a"}))),
        (CHAT, message(json!({"name": "Ann"}))),
        (CHAT, json!({"logit_bias": {"5": -100}, "structured_outputs": {"regex": "a"}})),
        ("/v1/completions", json!({"n": 2, "best_of": 2})),
        ("/completion", json!({"n": 1, "logit_bias": [[5, 1000]]})),
    ] {
        let (status, body) = ask(&running, path, &more);
        assert_eq!(status, 200, "{path} {more}: {body}");
    }
}

#[test]
fn dialects_that_require_a_model_name_it() {
    let running = Setup::built_in(1).start();
    let messages = json!([{"role": "user", "content": "Hi"}]);
    for path in ["/v1/messages", "/v1/messages/count_tokens", "/api/chat", "/api/generate"] {
        let body =
            json!({"messages": messages, "prompt": "Hi", "max_tokens": 1, "options": {"num_predict": 1}});
        let refused = running.post(path, &body);
        assert_eq!(refused.status, 400, "{path}: {}", refused.text);
        assert!(refused.text.contains("`model` is missing"), "{path}: {}", refused.text);
        for wrong in [json!(5), json!([])] {
            let mut body = body.clone();
            body["model"] = wrong;
            assert_eq!(running.post(path, &body).status, 400, "{path}");
        }
        let mut body = body;
        body["model"] = "golden".into();
        assert_eq!(running.post(path, &body).status, 200, "{path}");
    }
}

#[test]
fn all_bits_of_a_seed_count() {
    let running = Setup::built_in(1).start();
    let text = |seed: u64| {
        let more = json!({"seed": seed, "temperature": 2.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "max_tokens": 12});
        ask(&running, "/v1/completions", &more).1["choices"][0]["text"].clone()
    };
    let (small, large) = (text(7), text((1 << 32) + 7));
    assert_ne!(small, large);
    assert_eq!((text(7), text((1 << 32) + 7)), (small, large));
}
