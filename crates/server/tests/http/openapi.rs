//! The document of the API, and the server that it describes.

use std::collections::BTreeSet;

use chaski::embedding::Pooling;
use chaski_server::{Key, Level};
use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

fn setup() -> Setup {
    let mut setup = Setup::built_in(2);
    setup.options.pooling = Some(Pooling::Mean);
    setup
}

fn document(running: &Running) -> Value {
    let answer = running.get("/openapi.json");
    assert_eq!(
        (answer.status, &answer.headers["content-type"]),
        (200, &"application/json; charset=utf-8".parse().unwrap())
    );
    answer.body
}

/// Method, path and operation of all operations.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().expect("a document has paths");
    let mut all = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().expect("a path has operations") {
            all.push((method.as_str(), path.as_str(), operation));
        }
    }
    all
}

/// All references of a value.
fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

fn resolve<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    match schema["$ref"].as_str() {
        Some(path) => document.pointer(&path[1..]).unwrap_or_else(|| panic!("{path} leads nowhere")),
        None => schema,
    }
}

#[test]
fn the_document_is_whole() {
    let running = setup().start();
    let document = document(&running);
    assert_eq!(document["openapi"], "3.1.0");
    for name in ["title", "version"] {
        assert!(document["info"][name].is_string(), "{name}");
    }
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100);
    for path in found {
        assert!(document.pointer(&path[1..]).is_some(), "{path} leads nowhere");
    }
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name} is there twice");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
        assert!(
            operation["tags"].as_array().unwrap().iter().all(|tag| tags.contains(&tag)),
            "{method} {path}"
        );
        assert!(!operation["responses"].as_object().unwrap().is_empty(), "{method} {path}");
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let in_path: Vec<&str> =
            parameters.iter().filter(|p| p["in"] == "path").map(|p| p["name"].as_str().unwrap()).collect();
        let in_template: Vec<&str> =
            path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
        assert_eq!(in_path, in_template, "{method} {path}");
    }
    assert!(names.len() > 60, "{names:?}");
    // It is no secret, but where keys are required it is none of the public paths either.
    let mut setup = setup();
    setup.config.keys = vec![Key::new("ann", "secret")];
    assert_eq!(setup.start().get("/openapi.json").status, 401);
}

#[test]
fn the_server_has_the_operations_of_the_document() {
    let mut setup = setup();
    setup.config.keys = vec![Key::new("ann", "secret"), Key::new("bob", "master").level(Level::Admin)];
    let running = setup.start();
    let key = json!({"authorization": "Bearer secret"});
    let document = running.send(&json!({"method": "GET", "path": "/openapi.json", "headers": key})).body;
    let mut n_admin = 0;
    for (method, path, operation) in operations(&document) {
        let asked = path.replace("{id}", "x").replace("{digest}", "x");
        let method = method.to_uppercase();
        let mut request = json!({"method": method, "path": asked});
        // Operations that need no key say so, and no others.
        let is_public = operation["security"] == json!([]);
        assert_eq!(running.send(&request).status == 401, !is_public, "{method} {path}");
        // A stream of changes does not end.
        let is_endless = operation["responses"]["200"]["content"]
            .as_object()
            .is_some_and(|content| content.len() == 1 && content.contains_key("text/event-stream"));
        if is_endless {
            continue;
        }
        request["headers"] = key.clone();
        if operation.get("requestBody").is_some() {
            request["body"] = json!({"model": 5});
        }
        let answer = running.send(&request);
        let is_unknown = answer.text.contains("there is nothing at");
        assert!(answer.status != 405 && !is_unknown, "{method} {path}: {} {}", answer.status, answer.text);
        // So do those that need a key of the level `admin`.
        let is_for_admins = operation["description"].as_str().is_some_and(|text| text.contains("`admin`"));
        assert_eq!(answer.status == 403, is_for_admins, "{method} {path}: {}", answer.text);
        n_admin += usize::from(is_for_admins);
        if is_for_admins && path != "/admin/drain" {
            request["headers"] = json!({"authorization": "Bearer master"});
            assert_ne!(running.send(&request).status, 403, "{method} {path}");
        }
    }
    assert_eq!(n_admin, 10);
}

/// The types of a schema's values.
fn types(schema: &Value) -> BTreeSet<&str> {
    match (&schema["anyOf"], &schema["type"]) {
        (Value::Array(list), _) => list.iter().flat_map(types).collect(),
        (_, Value::String(name)) => [name.as_str()].into(),
        (_, Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

/// A value of another type.
fn wrong(schema: &Value) -> Option<Value> {
    let types = types(schema);
    let others = [
        (&["object"][..], json!({"x": 1})),
        (&["boolean"], json!(true)),
        (&["string"], json!("\u{1}")),
        (&["number", "integer"], json!(0.5)),
        (&["array"], json!([[true]])),
    ];
    let fits = |(names, _): &&(&[&str], Value)| names.iter().all(|name| !types.contains(name));
    let found = others.iter().find(fits).map(|(_, value)| value.clone());
    found.filter(|_| !types.is_empty())
}

#[test]
fn values_of_other_types_are_refused_by_name() {
    let running = setup().start();
    let document = document(&running);
    let messages = json!([{"role": "user", "content": "A"}]);
    let bases: [(&str, &[Value]); 13] = [
        ("/v1/chat/completions", &[json!({"messages": messages})]),
        ("/v1/completions", &[json!({"prompt": "A"})]),
        ("/v1/responses", &[json!({"input": "A"})]),
        ("/v1/messages", &[json!({"model": "golden", "messages": messages, "max_tokens": 1})]),
        ("/v1/messages/count_tokens", &[json!({"model": "golden", "messages": messages})]),
        ("/completion", &[json!({"prompt": "A"})]),
        ("/tokenize", &[json!({"content": "A"}), json!({"prompt": "A"}), json!({"messages": messages})]),
        ("/detokenize", &[json!({"tokens": [1]})]),
        ("/v1/completions/render", &[json!({"prompt": "A"})]),
        ("/v1/embeddings", &[json!({"input": "A"}), json!({"content": "A"}), json!({"prompt": "A"})]),
        (
            "/api/chat",
            &[json!({"model": "golden", "messages": messages, "stream": false}), json!({"model": "golden"})],
        ),
        (
            "/api/generate",
            &[json!({"model": "golden", "prompt": "A", "stream": false}), json!({"model": "golden"})],
        ),
        ("/api/show", &[json!({}), json!({"model": "golden"})]),
    ];
    let mut n = 0;
    for (path, bases) in bases {
        let content = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
        let schema = resolve(&document, &content["schema"]);
        for (name, field) in schema["properties"].as_object().unwrap() {
            // Its type matters where it is used.
            let Some(wrong) = wrong(field).filter(|_| name != "model") else { continue };
            let refused = |base: &Value| {
                let mut body = base.clone();
                body[name] = wrong.clone();
                let answer = running.post(path, &body);
                let text = answer.body["error"]["message"].as_str().or(answer.body["error"].as_str());
                answer.status == 400 && text.is_some_and(|text| text.contains(&format!("`{name}")))
            };
            assert!(bases.iter().any(refused), "{path} takes {wrong} for {name}");
            n += 1;
        }
    }
    assert!(n > 250, "{n}");
}

/// The difference between a value and a schema, by its path.
fn misfit(document: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    let schema = resolve(document, schema);
    if let Some(kinds) = schema["anyOf"].as_array() {
        let all: Vec<_> = kinds.iter().map(|kind| misfit(document, kind, value, path)).collect();
        return all.into_iter().reduce(|one, other| one.and(other)).flatten();
    }
    let types = types(schema);
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_number = kind == "integer" && types.contains("number");
    if !types.is_empty() && !types.contains(kind) && !is_number {
        return Some(format!("{path} is {value}, not {types:?}"));
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Some(format!("{path} is {value}"));
    }
    match value {
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(i, value)| misfit(document, &schema["items"], value, &format!("{path}[{i}]"))),
        Value::Object(map) => {
            let fields = schema["properties"].as_object().filter(|fields| !fields.is_empty())?;
            let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing = needed
                .filter(|name| !map.contains_key(*name))
                .map(|name| format!("{path}.{name} is missing"));
            let each = map.iter().filter_map(|(name, value)| match fields.get(name) {
                None if schema["additionalProperties"] == true => None,
                None => Some(format!("{path}.{name} is not in the document")),
                Some(field) => misfit(document, field, value, &format!("{path}.{name}")),
            });
            missing.chain(each).next()
        }
        _ => None,
    }
}

/// Asserts that a response is as the document of its server says.
pub(crate) fn assert_fits(running: &Running, method: &str, path: &str, answer: &Answer) {
    let document = document(running);
    let content = &document["paths"][path][method]["responses"]["200"]["content"]["application/json"];
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    assert!(content["schema"].is_object(), "{path}");
    assert_eq!(misfit(&document, &content["schema"], &answer.body, path), None, "{}", answer.text);
}

#[test]
fn responses_are_as_the_document_says() {
    let running = setup().start();
    let document = document(&running);
    let messages = json!([{"role": "user", "content": "A"}]);
    let asked = [
        (
            "/v1/chat/completions",
            json!({"messages": messages, "max_tokens": 3, "logprobs": true, "return_tokens": true}),
        ),
        ("/v1/completions", json!({"prompt": "A", "max_tokens": 3, "logprobs": 2, "n": 2})),
        ("/v1/responses", json!({"input": "A", "max_output_tokens": 3})),
        ("/v1/responses/input_tokens", json!({"input": "A"})),
        ("/v1/chat/completions/input_tokens", json!({"messages": messages})),
        ("/v1/messages", json!({"model": "golden", "messages": messages, "max_tokens": 3})),
        ("/v1/messages/count_tokens", json!({"model": "golden", "messages": messages})),
        ("/completion", json!({"prompt": "A", "n_predict": 3, "n_probs": 2, "return_tokens": true})),
        ("/completion", json!({"prompt": ["A", "B"], "n_predict": 3})),
        (
            "/completion",
            json!({"prompt": "A", "n_predict": 3, "response_fields": ["content", "generation_settings/top_k"]}),
        ),
        ("/v1/completions/render", json!({"prompt": ["A", "B"]})),
        ("/tokenize", json!({"content": "A", "with_pieces": true})),
        ("/tokenize", json!({"prompt": "A", "return_token_strs": true})),
        ("/detokenize", json!({"tokens": [5]})),
        ("/apply-template", json!({"messages": messages})),
        ("/v1/chat/completions/render", json!({"messages": messages})),
        ("/v1/completions/render", json!({"prompt": "A"})),
        ("/v1/embeddings", json!({"input": ["A", "B"]})),
        ("/v1/embeddings", json!({"input": "A", "encoding_format": "base64"})),
        ("/embedding", json!({"content": "A"})),
        ("/api/embed", json!({"model": "golden", "input": "A"})),
        ("/api/embeddings", json!({"model": "golden", "prompt": "A"})),
        (
            "/api/chat",
            json!({"model": "golden", "messages": messages, "stream": false, "logprobs": true, "options": {"num_predict": 3}}),
        ),
        ("/api/chat", json!({"model": "golden"})),
        (
            "/api/generate",
            json!({"model": "golden", "prompt": "A", "stream": false, "options": {"num_predict": 3}}),
        ),
        ("/api/show", json!({"model": "golden"})),
    ];
    for (path, body) in asked {
        assert_fits(&running, "post", path, &running.post(path, &body));
    }
    for path in [
        "/v1/models",
        "/health",
        "/livez",
        "/slots",
        "/props",
        "/server_info",
        "/model_info",
        "/load",
        "/v1/loads",
        "/api/tags",
        "/api/ps",
        "/api/version",
        "/openapi.json",
    ] {
        assert_fits(&running, "get", path, &running.get(path));
    }
    assert_fits(&running, "get", "/v1/models/{id}", &running.get("/v1/models/golden"));
    let all = running.post("/completion", &json!({"prompt": "A", "n_predict": 3, "n_probs": 1})).body;
    let schema = resolve(&document, &document["components"]["schemas"]["LlamaCompletion"]["anyOf"][0]);
    for name in schema["properties"].as_object().expect("an object has fields").keys() {
        assert!(all.get(name).is_some(), "an answer without `response_fields` has {name}");
    }
    // Errors are what is said of all other statuses.
    for (path, body) in [
        ("/v1/chat/completions", json!({})),
        ("/v1/messages", json!({})),
        ("/api/chat", json!([])),
        ("/completion", json!({})),
    ] {
        let content = &document["paths"][path]["post"]["responses"]["default"]["content"]["application/json"];
        let answer = running.post(path, &body);
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(misfit(&document, &content["schema"], &answer.body, path), None, "{}", answer.text);
    }
}
