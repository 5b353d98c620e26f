//! Responses that are kept, and prefixes that are kept apart.

use chaski_server::Key;
use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

const RESPONSES: &str = "/v1/responses";

fn start(n: usize) -> Running {
    let mut setup = Setup::built_in(1);
    setup.chat_template("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
    setup.config.kept_responses = n;
    setup.start()
}

fn respond(running: &Running, input: Value, more: Value) -> Answer {
    let mut body = json!({"input": input, "max_output_tokens": 5, "temperature": 0});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    running.post(RESPONSES, &body)
}

fn id(answer: &Answer) -> &str {
    answer.body["id"].as_str().unwrap_or_else(|| panic!("{}", answer.text))
}

fn after(answer: &Answer) -> Value {
    json!({"previous_response_id": id(answer)})
}

fn delete(running: &Running, id: &str) -> Answer {
    running.send(&json!({"method": "DELETE", "path": format!("{RESPONSES}/{id}")}))
}

#[test]
fn a_response_goes_on_from_one_that_is_kept() {
    let running = start(3);
    let first = respond(&running, json!("Once upon a time"), json!({}));
    assert_eq!((&first.body["store"], &first.body["previous_response_id"]), (&json!(true), &Value::Null));
    let kept = running.get(&format!("{RESPONSES}/{}", id(&first)));
    assert_eq!((kept.status, &kept.body), (200, &first.body));

    let second = respond(&running, json!([{"role": "user", "content": "And then?"}]), after(&first));
    assert_eq!(second.body["previous_response_id"], first.body["id"]);
    // The same as the whole conversation.
    let message = |text: &str| json!({"role": "user", "content": text});
    let mut items = vec![message("Once upon a time")];
    items.extend(first.body["output"].as_array().unwrap().clone());
    items.push(message("And then?"));
    let whole = respond(&running, items.clone().into(), json!({"store": false}));
    let text = |answer: &Answer| answer.body["output"][0]["content"][0]["text"].clone();
    assert!(text(&second).is_string() && text(&second) == text(&whole), "{}\n{}", second.text, whole.text);
    let n_token = |answer: &Answer| answer.body["usage"]["input_tokens"].clone();
    assert_eq!(n_token(&second), n_token(&whole));
    let counted = json!({"input": "And then?", "previous_response_id": id(&first)});
    assert_eq!(running.post("/v1/responses/input_tokens", &counted).body["input_tokens"], n_token(&second));
    // One that is not to be kept is not.
    assert_eq!(
        (whole.body["store"].clone(), running.get(&format!("{RESPONSES}/{}", id(&whole))).status),
        (json!(false), 404)
    );

    // A stream is kept once it has ended.
    let mut more = after(&second);
    more["stream"] = true.into();
    let third = respond(&running, json!("And?"), more);
    let (name, last) = third.events.last().unwrap();
    let last = &last["response"];
    assert_eq!((name.as_str(), &last["previous_response_id"]), ("response.incomplete", &second.body["id"]));
    assert_eq!(third.events[0].1["response"]["store"], true);
    let kept = running.get(&format!("{RESPONSES}/{}", last["id"].as_str().unwrap()));
    assert_eq!((kept.status, &kept.body), (200, last));

    // The oldest goes, and what is asked for is used.
    assert_eq!(running.get(&format!("{RESPONSES}/{}", id(&first))).status, 200);
    let fourth = respond(&running, json!("New."), json!({}));
    assert_eq!(respond(&running, json!("x"), after(&first)).status, 200);
    let gone = respond(&running, json!("x"), after(&second));
    assert_eq!(
        (gone.status, &gone.body["error"]["param"]),
        (400, &json!("previous_response_id")),
        "{}",
        gone.text
    );
    assert_eq!(
        delete(&running, id(&fourth)).body,
        json!({"id": id(&fourth), "object": "response", "deleted": true})
    );
    assert_eq!(
        (delete(&running, id(&fourth)).status, respond(&running, json!("x"), after(&fourth)).status),
        (404, 400)
    );
}

#[test]
fn errors_of_items_have_the_places_of_the_request() {
    let running = start(3);
    let first = respond(&running, json!("Once"), json!({}));
    for (input, param) in [
        (
            json!([{"role": "user", "content": "A"}, {"role": "user", "content": [{"type": "input_image"}]}]),
            "input[1].content[0].type",
        ),
        (json!([{"role": "nobody", "content": "A"}]), "input[0].role"),
        (json!(7), "input"),
        (json!(null), "input"),
    ] {
        let refused = respond(&running, input, after(&first));
        assert_eq!(
            (refused.status, &refused.body["error"]["param"]),
            (400, &json!(param)),
            "{}",
            refused.text
        );
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{param}`")) || message.contains("`input_image`"), "{message}");
    }
    assert_eq!(respond(&running, json!("A"), json!({"previous_response_id": 3})).status, 400);
}

#[test]
fn responses_belong_to_the_key_that_asked() {
    let mut setup = Setup::built_in(1);
    setup.config.kept_responses = 9;
    setup.config.keys = vec![Key::new("ann", "a"), Key::new("bob", "b")];
    let running = setup.start();
    let ask = |key: &str, method: &str, path: &str, body: Value| {
        let headers = json!({"authorization": format!("Bearer {key}")});
        running.send(&json!({"method": method, "path": path, "headers": headers, "body": body}))
    };
    let first = ask("a", "POST", RESPONSES, json!({"input": "Hi", "max_output_tokens": 1}));
    let path = format!("{RESPONSES}/{}", id(&first));
    let next = json!({"input": "Hi", "max_output_tokens": 1, "previous_response_id": id(&first)});
    assert_eq!(ask("b", "GET", &path, Value::Null).status, 404);
    assert_eq!(ask("b", "DELETE", &path, Value::Null).status, 404);
    assert_eq!(ask("b", "POST", RESPONSES, next.clone()).status, 400);
    assert_eq!(ask("a", "POST", RESPONSES, next).status, 200);
}

#[test]
fn a_server_without_a_store_says_so() {
    let running = start(0);
    let first = respond(&running, json!("Once"), json!({"store": true}));
    assert_eq!(first.body["store"], false);
    let found = running.get(&format!("{RESPONSES}/{}", id(&first)));
    assert!(found.status == 404 && found.text.contains("--store"), "{}", found.text);
    let refused = respond(&running, json!("Once"), after(&first));
    assert_eq!((refused.status, &refused.body["error"]["param"]), (400, &json!("previous_response_id")));
}

/// Cached tokens of a prompt, by the key and the salt of its request.
fn cached(running: &Running, key: &str, salt: Value) -> u64 {
    let prompt =
        "Once upon a time there was a small dog who liked to play in the park with his friends all day";
    let headers = json!({"authorization": format!("Bearer {key}")});
    let mut n_cached = None;
    for (path, body) in [
        ("/v1/completions", json!({"prompt": prompt, "max_tokens": 1, "cache_salt": salt})),
        (
            "/v1/chat/completions",
            json!({"messages": [{"role": "user", "content": prompt}], "max_tokens": 1, "cache_salt": salt}),
        ),
    ] {
        let answer = running.send(&json!({"method": "POST", "path": path, "headers": headers, "body": body}));
        let n = answer.body["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
        let n = n.unwrap_or_else(|| panic!("{}", answer.text));
        // All prompts begin with the same token.
        let n = n.saturating_sub(1);
        assert!(n_cached.is_none_or(|before: u64| (before == 0) == (n == 0)), "{path}: {n} {n_cached:?}");
        n_cached = Some(n);
    }
    n_cached.unwrap_or_default()
}

#[test]
fn a_text_to_embed_shares_its_prefix_under_its_salt_alone() {
    let mut setup = Setup::built_in(1);
    setup.options.pooling = Some(chaski::embedding::Pooling::Last);
    let running = setup.start();
    let text = "Once upon a time there was a small dog who liked to play in the park with his friends";
    let embedded = running.post("/v1/embeddings", &json!({"input": text, "cache_salt": "x"}));
    assert_eq!(embedded.status, 200, "{}", embedded.text);
    let is_cached = |salt: Value| {
        let body = json!({"prompt": text, "max_tokens": 1, "cache_salt": salt});
        let usage = running.post("/v1/completions", &body).body["usage"].take();
        usage["prompt_tokens_details"]["cached_tokens"].as_u64().expect("a number") > 5
    };
    assert!(!is_cached(json!("y")) && !is_cached(Value::Null) && is_cached(json!("x")));
}

#[test]
fn prefixes_with_different_salts_are_not_shared() {
    for per_key in [false, true] {
        let mut setup = Setup::built_in(1);
        setup.chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}");
        setup.config.keys = vec![Key::new("ann", "a"), Key::new("bob", "b")];
        setup.options.cache_per_key = per_key;
        let running = setup.start();
        let is_cached = |key: &str, salt: Value| cached(&running, key, salt) > 0;
        assert!(!is_cached("a", Value::Null) && is_cached("a", Value::Null));
        assert_eq!(is_cached("b", Value::Null), !per_key, "another key");
        assert!(!is_cached("a", json!("x")) && is_cached("a", json!("x")), "a salt");
        assert!(!is_cached("a", json!("y")), "another salt");
        assert_eq!(is_cached("b", json!("x")), !per_key, "another key with the same salt");
        let wrong = running.send(
            &json!({"method": "POST", "path": "/v1/completions", "headers": {"authorization": "Bearer a"},
            "body": {"prompt": "A", "cache_salt": ""}}),
        );
        assert_eq!((wrong.status, &wrong.body["error"]["param"]), (400, &json!("cache_salt")));
    }
}
