//! Tools with `strict`: their calls conform to their schemas, also where the model may choose.

use serde_json::{Value, json};

use crate::serve::{Running, Setup};

/// A server in whose notation an answer that begins with `{` is a call.
fn start() -> Running {
    let mut setup = Setup::built_in(1);
    setup.chat_template(
        "{# <|start_header_id|> ipython \"parameters\" #}{% for m in messages %}{{ m.content }}{% endfor %}",
    );
    setup.start()
}

fn parameters() -> Value {
    json!({"type": "object", "properties": {"n": {"enum": [17, 23]}, "on": {"type": "boolean"}}, "required": ["n", "on"]})
}

fn function(strict: Value, parameters: Value) -> Value {
    json!({"type": "function", "function": {"name": "f", "parameters": parameters, "strict": strict}})
}

#[test]
fn a_call_that_a_model_begins_conforms_to_its_strict_tool() {
    let running = start();
    let tokens =
        running.post("/tokenize", &json!({"content": "{", "add_special": false})).body["tokens"].clone();
    let brace = tokens.as_array().and_then(|ids| ids.last()).and_then(Value::as_u64).expect("a token");
    let ask = |strict: bool, path: &str, more: Value| {
        let mut body =
            json!({"messages": [{"role": "user", "content": "Go."}], "max_tokens": 150, "temperature": 0});
        // A model that likes to begin with an object; after a `;` there would be another.
        body["logit_bias"] = json!({brace.to_string(): 100});
        body["stop"] = json!([";"]);
        body["tools"] = json!([function(strict.into(), parameters())]);
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        running.post(path, &body)
    };
    let loose = ask(false, "/v1/chat/completions", json!({}));
    assert_eq!((loose.status, &loose.body["choices"][0]["message"]["tool_calls"]), (200, &Value::Null));
    let answer = ask(true, "/v1/chat/completions", json!({"tool_choice": "auto"}));
    let choice = &answer.body["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{}", answer.text);
    let call = &choice["message"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "f");
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().expect("a text")).expect("JSON");
    assert!([17, 23].iter().any(|n| arguments["n"] == *n) && arguments["on"].is_boolean(), "{arguments}");
    // A model that writes text is left alone.
    let text = ask(true, "/v1/chat/completions", json!({"logit_bias": null, "max_tokens": 8}));
    assert!(text.body["choices"][0]["message"]["content"].as_str().is_some_and(|text| !text.is_empty()));
}

#[test]
fn a_strict_schema_that_cannot_be_kept_to_is_refused_by_its_path() {
    let running = start();
    let messages = json!([{"role": "user", "content": "Go."}]);
    let impossible = json!({"type": "object", "properties": {"a": {"not": {}}}});
    let chat = |tool: Value| json!({"messages": messages, "tools": [tool], "max_tokens": 4, "stream": false});
    let flat = |strict: Value, schema: Value, key: &str| json!({"name": "f", "strict": strict, key: schema});
    let response = |mut tool: Value| {
        tool["type"] = "function".into();
        json!({"input": "Go.", "tools": [tool], "max_output_tokens": 4})
    };
    let with_model = |mut body: Value| {
        body["model"] = "golden".into();
        body
    };
    for (path, body, expected) in [
        (
            "/v1/chat/completions",
            chat(function(true.into(), impossible.clone())),
            Some("tools[0].function.parameters"),
        ),
        (
            "/v1/chat/completions",
            chat(function("yes".into(), parameters())),
            Some("tools[0].function.strict"),
        ),
        ("/v1/chat/completions", chat(function(Value::Null, impossible.clone())), None),
        (
            "/v1/responses",
            response(flat(true.into(), impossible.clone(), "parameters")),
            Some("tools[0].parameters"),
        ),
        ("/v1/responses", response(flat(1.into(), parameters(), "parameters")), Some("tools[0].strict")),
        (
            "/v1/messages",
            with_model(chat(flat(true.into(), impossible.clone(), "input_schema"))),
            Some("tools[0].input_schema"),
        ),
        (
            "/v1/messages",
            with_model(chat(flat("no".into(), parameters(), "input_schema"))),
            Some("tools[0].strict"),
        ),
        (
            "/api/chat",
            with_model(chat(function(true.into(), impossible.clone()))),
            Some("tools[0].function.parameters"),
        ),
    ] {
        let answer = running.post(path, &body);
        match expected {
            None => assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text),
            Some(blamed) => {
                assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text);
                assert!(answer.text.contains(&format!("`{blamed}`")), "{path} {body}: {}", answer.text);
                if path.ends_with("completions") || path.ends_with("responses") {
                    assert_eq!(answer.body["error"]["param"], blamed);
                }
            }
        }
    }
}
