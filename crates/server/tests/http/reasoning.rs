//! Budgets of reasoning.

use std::thread;

use serde_json::{Value, json};

use crate::serve::{Running, Setup};

/// A model whose answers begin in the midst of reasoning.
fn setup(n_seq: u32) -> Setup {
    let mut setup = Setup::built_in(n_seq);
    setup.chat_template(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
         {% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
    );
    setup
}

const MARKER: &str = "</think>";

/// A chat with these fields, for 40 tokens.
fn body(more: &Value) -> Value {
    let mut body = json!({
        "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 40, "temperature": 0,
        "ignore_eos": true, "return_token_ids": true,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn chat(running: &Running, more: &Value) -> Value {
    let answer = running.post("/v1/chat/completions", &body(more));
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body
}

/// The tokens of the first answer.
fn tokens(body: &Value) -> Vec<u64> {
    body["choices"][0]["token_ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

/// The tokens of the marker.
fn marker(running: &Running) -> Vec<u64> {
    let found = running.post("/tokenize", &json!({"content": MARKER, "add_special": false}));
    found.body["tokens"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

/// With these fields, then with the budget: the tokens before the marker, and those of an answer without a budget.
fn check(running: &Running, more: &Value, n_max: usize) {
    let marker = marker(running);
    let free = tokens(&chat(running, more));
    assert_eq!(free.len(), 40);
    let mut limited = more.clone();
    limited["reasoning_budget"] = n_max.into();
    let body = chat(running, &limited);
    let found = tokens(&body);
    assert_eq!(found[..n_max], free[..n_max], "{more}");
    assert_eq!(found[n_max..][..marker.len()], marker, "{more}: {body}");
    assert_eq!(found.len(), 40);
    let message = &body["choices"][0]["message"];
    let texts = ["reasoning_content", "content"].map(|name| message[name].as_str().unwrap());
    assert!(texts.iter().all(|text| !text.is_empty() && !text.contains("think>")), "{message}");
    assert_eq!(body["usage"]["completion_tokens"], 40);
}

#[test]
fn answers_up_to_the_budget_are_those_without_one() {
    let running = setup(2).start();
    for more in [
        json!({}),
        json!({"temperature": 1.2, "seed": 5}),
        json!({"temperature": 1.2, "seed": 5, "logprobs": true}),
        json!({"temperature": 0.8, "seed": 6, "repeat_penalty": 1.3, "dry_multiplier": 0.5}),
    ] {
        for n_max in [1, 10] {
            check(&running, &more, n_max);
        }
    }
}

#[test]
fn drafts_change_nothing() {
    let mut setup = setup(1);
    setup.drafts = true;
    setup.options.speculation = Some(chaski::options::Speculation::default());
    let running = setup.start();
    check(&running, &json!({}), 9);
    check(&running, &json!({"temperature": 1.0, "seed": 3}), 9);
}

#[test]
fn company_changes_nothing() {
    let running = setup(4).start();
    let asks: Vec<Value> = (0..6)
        .map(|i| {
            let budget = if i % 3 == 2 { -1 } else { 3 + 2 * i };
            json!({"temperature": if i % 2 == 0 { 0.0 } else { 1.0 }, "seed": i, "reasoning_budget": budget,
                "messages": [{"role": "user", "content": format!("Story {i}!")}]})
        })
        .collect();
    let alone: Vec<Vec<u64>> = asks.iter().map(|more| tokens(&chat(&running, more))).collect();
    let beside: Vec<Vec<u64>> = thread::scope(|scope| {
        let all: Vec<_> = asks.iter().map(|more| scope.spawn(|| tokens(&chat(&running, more)))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(alone, beside);
    // Both answers to one prompt.
    let two = chat(&running, &json!({"n": 2, "reasoning_budget": 6}));
    assert_eq!(two["choices"][0]["token_ids"], two["choices"][1]["token_ids"]);
    assert!(two["choices"][1]["message"]["content"].is_string(), "{two}");
}

#[test]
fn a_schema_holds_for_what_follows_the_budget() {
    let running = setup(1).start();
    let schema = json!({"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let tool = json!({"type": "function", "function": {"name": "count", "parameters": schema}});
    for n_max in [0, 5] {
        let more = json!({"reasoning_budget": n_max, "response_format": format, "max_tokens": 120});
        let body = chat(&running, &more);
        let message = &body["choices"][0]["message"];
        let value: Value = serde_json::from_str(message["content"].as_str().unwrap()).expect("JSON");
        assert!([1, 2].iter().any(|n| value["n"] == *n), "{value}");
        assert_eq!(message["reasoning_content"].is_string(), n_max > 0, "{message}");
        let more =
            json!({"reasoning_budget": n_max, "tools": [tool], "tool_choice": "required", "max_tokens": 120});
        let called = &chat(&running, &more)["choices"][0]["message"];
        assert_eq!(called["tool_calls"][0]["function"]["name"], "count", "{called}");
        assert_eq!(called["reasoning_content"].is_string(), n_max > 0, "{called}");
    }
}

#[test]
fn no_tokens_are_no_reasoning() {
    let running = setup(1).start();
    let prompt = chat(&running, &json!({}))["prompt_token_ids"].clone();
    let body = chat(&running, &json!({"reasoning_budget": 0}));
    let message = &body["choices"][0]["message"];
    assert!(message["content"].is_string() && message.get("reasoning_content").is_none(), "{message}");
    assert_eq!(body["prompt_token_ids"], prompt);
    // A template with a switch does it itself.
    let mut switched = Setup::built_in(1);
    switched.chat_template(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:\
         {% if enable_thinking %}<think>\n{% else %} quick{% endif %}",
    );
    let running = switched.start();
    let off = chat(&running, &json!({"chat_template_kwargs": {"enable_thinking": false}}));
    assert_eq!(tokens(&chat(&running, &json!({"reasoning_budget": 0}))), tokens(&off));
    // A model without reasoning.
    let mut plain = Setup::built_in(1);
    plain.chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:");
    let running = plain.start();
    let free = tokens(&chat(&running, &json!({})));
    for n_max in [0, 3] {
        assert_eq!(tokens(&chat(&running, &json!({"reasoning_budget": n_max}))), free);
    }
}

#[test]
fn each_dialect_and_the_server_have_budgets() {
    let mut setup = setup(1);
    setup.options.reasoning_budget = Some(4);
    let running = setup.start();
    let marker = marker(&running);
    let at = |more: &Value| {
        let found = tokens(&chat(&running, more));
        found.windows(marker.len()).position(|part| part == marker)
    };
    assert_eq!(at(&json!({})), Some(4));
    assert_eq!(at(&json!({"reasoning_budget": 7})), Some(7));
    assert_eq!(at(&json!({"reasoning_budget": -1})), None);

    let messages = json!([{"role": "user", "content": "Tell me a story."}]);
    let anthropic = |max_tokens: u32, thinking: Value| {
        running.post(
            "/v1/messages",
            &json!({"model": "golden", "messages": messages, "max_tokens": max_tokens, "thinking": thinking,
                "temperature": 0}),
        )
    };
    let thinking = json!({"type": "enabled", "budget_tokens": 5});
    let found = anthropic(40, thinking.clone());
    let kinds: Vec<&str> = found.body["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["thinking", "text"], "{}", found.text);
    let refused = anthropic(5, thinking);
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(
        refused.text.contains("`thinking.budget_tokens` must be less than `max_tokens`"),
        "{}",
        refused.text
    );

    let ollama = running.post(
        "/api/chat",
        &json!({"model": "golden", "messages": messages, "stream": false,
        "options": {"temperature": 0, "num_predict": 40}}),
    );
    let message = &ollama.body["message"];
    assert!(!message["thinking"].as_str().unwrap().is_empty(), "{}", ollama.text);
    assert!(!message["content"].as_str().unwrap().is_empty(), "{}", ollama.text);
    let response = running.post(
        "/v1/responses",
        &json!({"input": "Tell me a story.", "temperature": 0,
        "max_output_tokens": 40, "reasoning_budget": 5}),
    );
    let kinds: Vec<&str> = response.body["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["reasoning", "message"], "{}", response.text);
}
