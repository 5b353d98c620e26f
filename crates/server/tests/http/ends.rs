//! Ends of answers that requests choose: `min_tokens`, `stop_token_ids`, `t_max_predict_ms`.

use serde_json::{Value, json};

use crate::serve::{Running, Setup};

/// A prompt whose answers are the same each time.
fn body(more: Value) -> Value {
    let mut body =
        json!({"prompt": "Once upon a time", "temperature": 0, "max_tokens": 40, "return_tokens": true});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

fn tokens(running: &Running, more: Value) -> Vec<u64> {
    let answer = running.post("/completion", &body(more));
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body["tokens"].as_array().expect("tokens").iter().map(|t| t.as_u64().expect("an id")).collect()
}

#[test]
fn tokens_of_a_request_end_its_answer() {
    let running = Setup::built_in(2).start();
    let whole = tokens(&running, json!({}));
    let stop = whole[9];
    let first = whole.iter().position(|t| *t == stop).expect("it is there");
    let stops = json!({"stop_token_ids": [2047, stop]});
    assert_eq!(tokens(&running, stops.clone()), whole[..first]);
    let text = running.post("/detokenize", &json!({"tokens": whole[..first]})).body["content"].clone();

    for path in ["/v1/completions", "/v1/chat/completions"] {
        let chat = path.contains("chat");
        let ask = |more: Value| {
            let mut body = body(more);
            // A chat of the same tokens has no template to go through.
            if chat {
                body["messages"] = json!([{"role": "user", "content": "A story, please."}]);
            }
            body
        };
        let mut stops = stops.clone();
        if chat {
            let all = running.post(path, &ask(json!({}))).body["choices"][0]["token_ids"].clone();
            stops = json!({"stop_token_ids": [all[4]]});
        }
        let answer = running.post(path, &ask(stops.clone()));
        let choice = &answer.body["choices"][0];
        let id = &stops["stop_token_ids"].as_array().and_then(|ids| ids.last()).expect("an id").clone();
        assert_eq!(
            (&choice["finish_reason"], &choice["stop_reason"]),
            (&json!("stop"), id),
            "{}",
            answer.text
        );
        let found = if chat { &choice["message"]["content"] } else { &choice["text"] };
        assert!(chat || *found == text, "{found} {text}");

        stops["stream"] = true.into();
        let streamed = running.post(path, &ask(stops));
        let choices = streamed.events.iter().filter_map(|(_, event)| event["choices"].get(0));
        let (mut joined, mut last) = (String::new(), &Value::Null);
        for choice in choices {
            let text = if chat { &choice["delta"]["content"] } else { &choice["text"] };
            joined.push_str(text.as_str().unwrap_or_default());
            assert!(choice.get("stop_reason").is_none() || !choice["finish_reason"].is_null());
            last = choice;
        }
        assert_eq!(joined, *found);
        assert_eq!((&last["finish_reason"], &last["stop_reason"]), (&json!("stop"), id));
    }
}

#[test]
fn a_stop_string_is_the_reason_too() {
    let running = Setup::built_in(1).start();
    let answer = running.post("/v1/completions", &body(json!({"stop": ["zz", "e"]})));
    let choice = &answer.body["choices"][0];
    assert_eq!((&choice["finish_reason"], &choice["stop_reason"]), (&json!("stop"), &json!("e")));
    let answer = running.post("/v1/completions", &body(json!({})));
    assert!(answer.body["choices"][0].get("stop_reason").is_none(), "{}", answer.text);
}

#[test]
fn an_answer_has_its_minimum_of_tokens() {
    let running = Setup::built_in(2).start();
    // The token after the ninth, wherever it occurs, would end it at once.
    let whole = tokens(&running, json!({}));
    let stops = json!([whole[0]]);
    assert_eq!(tokens(&running, json!({"stop_token_ids": stops})), [0; 0]);
    for min_tokens in [1, 7, 40] {
        let asked = json!({"stop_token_ids": stops, "min_tokens": min_tokens});
        let found = tokens(&running, asked.clone());
        assert!(found.len() >= min_tokens && !found[..min_tokens].contains(&whole[0]), "{found:?}");
        // The same from logits.
        let mut from_logits = asked;
        from_logits["n_probs"] = 1.into();
        assert_eq!(tokens(&running, from_logits), found);
    }
    // The end of the model itself: with a bias it comes at once.
    let ends = running.get("/props").body["eos_token"].clone();
    assert!(ends.is_string(), "{ends}");
    let id = running.post("/tokenize", &json!({"content": ends})).body["tokens"][0].clone();
    let bias = json!([[id, 100]]);
    assert_eq!(tokens(&running, json!({"logit_bias": bias})).len(), 0);
    let found = running.post("/completion", &body(json!({"logit_bias": bias, "min_tokens": 6})));
    assert_eq!(found.body["tokens"].as_array().map(Vec::len), Some(6), "{}", found.text);
    assert_eq!(found.body["stop_type"], "eos");
    let grammar = json!({"grammar": "root ::= \"a\"", "min_tokens": 6});
    assert_eq!(running.post("/completion", &body(grammar)).body["content"], "a");
}

#[test]
fn ends_of_wrong_types_name_their_path() {
    let running = Setup::built_in(1).start();
    for (name, values) in [
        ("min_tokens", vec![json!(-1), json!("3"), json!([]), json!(41)]),
        (
            "stop_token_ids",
            vec![json!("3"), json!(3), json!([-1]), json!(["a"]), json!([1.5]), json!([1e9 as u64])],
        ),
        ("stop_token_ids", vec![json!([[1]]), json!({"1": 1}), json!(vec![1; 1025])]),
        ("t_max_predict_ms", vec![json!("3"), json!([3]), json!(-2), json!(true)]),
    ] {
        for value in values {
            for path in ["/v1/completions", "/v1/chat/completions", "/completion"] {
                let mut body = body(json!({"messages": [{"role": "user", "content": "A"}]}));
                body[name] = value.clone();
                let answer = running.post(path, &body);
                assert_eq!(answer.status, 400, "{path} {name}: {value}: {}", answer.text);
                assert_eq!(answer.body["error"]["param"], name, "{value}: {}", answer.text);
            }
        }
    }
}

#[test]
fn an_answer_ends_with_its_line_when_its_time_is_over() {
    let running = Setup::built_in(1).start();
    let lines = "root ::= ([a-z] [a-z] [a-z] [a-z] [a-z] [a-z] [a-z] [a-z] \"\\n\"){40}";
    let ask = |path: &str, ms: i64| {
        let mut body =
            body(json!({"grammar": lines, "t_max_predict_ms": ms, "max_tokens": 400, "n_predict": 400}));
        body["messages"] = json!([{"role": "user", "content": "A"}]);
        running.post(path, &body).body
    };
    let whole = ask("/completion", 0);
    assert_eq!(whole["content"].as_str().map(|text| text.lines().count()), Some(40), "{whole}");
    let cut = ask("/completion", 1);
    let text = cut["content"].as_str().expect("a text");
    assert!(text.ends_with('\n') && text.lines().count() < 40, "{text:?}");
    assert_eq!(cut["stop_type"], "limit");
    let chat = ask("/v1/chat/completions", 1);
    let choice = &chat["choices"][0];
    assert_eq!(choice["finish_reason"], "length");
    assert!(choice["message"]["content"].as_str().is_some_and(|text| text.lines().count() < 40), "{chat}");
    // Without a line there is no end.
    let flat = json!({"grammar": "root ::= [a-z]{60}", "t_max_predict_ms": 1, "max_tokens": 400});
    assert_eq!(running.post("/completion", &body(flat)).body["content"].as_str().map(str::len), Some(60));
}
