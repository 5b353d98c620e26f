//! Comparison by meaning: each case says what has to be equal.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::cases::Case;
use crate::schema::conforms;
use crate::serve::Answer;

/// The values at a path such as `choices.*.message.content`.
pub(crate) fn at<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![value];
    for name in path.split('.') {
        found = found
            .into_iter()
            .flat_map(|value| match (value, name) {
                (Value::Array(list), "*") => list.iter().collect::<Vec<_>>(),
                (Value::Array(list), name) => {
                    name.parse().ok().and_then(|i: usize| list.get(i)).into_iter().collect()
                }
                (value, name) => value.get(name).into_iter().collect(),
            })
            .collect();
    }
    found
}

/// Numbers anywhere in a value, in order.
fn numbers(value: &Value, out: &mut Vec<f64>) {
    match value {
        Value::Number(number) => out.extend(number.as_f64()),
        Value::Array(list) => list.iter().for_each(|value| numbers(value, out)),
        Value::Object(map) => map.values().for_each(|value| numbers(value, out)),
        _ => {}
    }
}

fn close(what: &str, ours: &[f64], theirs: &[f64], tolerance: f64) -> Result<(), String> {
    if ours.len() != theirs.len() || ours.is_empty() {
        return Err(format!("{what}: {} numbers instead of {}", ours.len(), theirs.len()));
    }
    let worst = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    if worst <= tolerance { Ok(()) } else { Err(format!("{what}: differs by {worst}")) }
}

fn equal(path: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
    let (ours, theirs) = (at(ours, path), at(theirs, path));
    if ours == theirs { Ok(()) } else { Err(format!("{path}: {ours:?} instead of {theirs:?}")) }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Compares an answer with the recorded one.
///
/// # Errors
/// The first difference.
pub(crate) fn compare(case: &Case, answer: &Answer) -> Result<(), String> {
    let status = case.response["status"].as_u64().expect("responses have a status");
    if u64::from(answer.status) != status {
        return Err(format!("status {} instead of {status}: {}", answer.status, answer.text));
    }
    let rules = case.compare.as_object().into_iter().flatten();
    for (rule, value) in rules {
        let (ours, theirs) = (&answer.body, &case.response["body"]);
        match rule.as_str() {
            // Compared above; `exact_plus` and `note` explain.
            "status" | "note" => {}
            "exact" => texts(value).try_for_each(|path| equal(path, ours, theirs))?,
            "exact_plus" => texts(value).try_for_each(|path| equal(path, ours, theirs))?,
            "keys" => texts(value).try_for_each(|name| {
                if !at(ours, name).is_empty() { Ok(()) } else { Err(format!("`{name}` is missing")) }
            })?,
            "tolerance" => tolerance(value, ours, theirs)?,
            "base64_f32_tolerance" => base64_numbers(value, ours, theirs)?,
            "starts_with" => starts_with(value, ours)?,
            "valid_json" => drop(content_json(ours)?),
            "schema_valid" => content_conforms(case, ours)?,
            "names" => names(value, &answer.text, case.response["text"].as_str().unwrap_or_default())?,
            "no_calls" => {
                if !at(ours, "choices.0.message.tool_calls").is_empty() {
                    return Err("there are calls".into());
                }
            }
            "tool_name" => call_is_named(value, ours)?,
            "schema_valid_arguments" => arguments_conform(case, ours)?,
            "finish_reason" => {
                let found = at(ours, "choices.0.finish_reason");
                if found != [value] {
                    return Err(format!("finish_reason: {found:?} instead of {value}"));
                }
            }
            _ => stream(rule, value, case, answer)?,
        }
    }
    Ok(())
}

fn tolerance(value: &Value, ours: &Value, theirs: &Value) -> Result<(), String> {
    for (path, limit) in value.as_object().into_iter().flatten() {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        at(ours, path).iter().for_each(|value| numbers(value, &mut a));
        at(theirs, path).iter().for_each(|value| numbers(value, &mut b));
        close(path, &a, &b, limit.as_f64().expect("limits are numbers"))?;
    }
    Ok(())
}

fn base64_numbers(limit: &Value, ours: &Value, theirs: &Value) -> Result<(), String> {
    let decode = |value: &Value| -> Vec<f64> {
        let text = at(value, "data.0.embedding").first().and_then(|v| v.as_str()).unwrap_or_default();
        let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
        bytes.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect()
    };
    close("base64", &decode(ours), &decode(theirs), limit.as_f64().expect("limits are numbers"))
}

fn starts_with(value: &Value, ours: &Value) -> Result<(), String> {
    let rules: Vec<(&str, &str)> = match value {
        Value::String(text) => vec![("choices.0.message.content", text)],
        value => {
            value.as_object().into_iter().flatten().filter_map(|(p, t)| Some((&**p, t.as_str()?))).collect()
        }
    };
    for (path, begin) in rules {
        let found = at(ours, path).first().and_then(|v| v.as_str()).unwrap_or_default();
        if !found.trim_start().starts_with(begin) {
            return Err(format!("{path}: {found:?} does not begin with {begin:?}"));
        }
    }
    Ok(())
}

fn content_json(ours: &Value) -> Result<Value, String> {
    let content = at(ours, "choices.0.message.content").first().and_then(|v| v.as_str()).unwrap_or_default();
    serde_json::from_str(content).map_err(|e| format!("{content:?}: {e}"))
}

/// The content is JSON that conforms to the schema of the request.
pub(crate) fn content_conforms(case: &Case, ours: &Value) -> Result<(), String> {
    let format = &case.request["body"]["response_format"];
    let schema = at(format, "json_schema.schema").first().copied().unwrap_or(&format["schema"]);
    if !schema.is_object() {
        return Err(format!("the request has no schema: {format}"));
    }
    conforms(schema, &content_json(ours)?, "content")
}

/// Names of metrics, each at the beginning of a line.
fn names(value: &Value, ours: &str, theirs: &str) -> Result<(), String> {
    let listed: Vec<&str> = texts(value).collect();
    let recorded =
        theirs.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split([' ', '{']).next());
    let wanted: Vec<&str> = if listed.is_empty() { recorded.collect() } else { listed };
    let missing: Vec<&str> =
        wanted.into_iter().filter(|name| !ours.lines().any(|line| line.starts_with(name))).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("metrics are missing: {missing:?}")) }
}

/// The first call of an answer.
fn call(ours: &Value) -> Result<&Value, String> {
    let calls = at(ours, "choices.0.message.tool_calls.0.function");
    calls.first().copied().ok_or_else(|| format!("no call: {ours}"))
}

fn call_is_named(name: &Value, ours: &Value) -> Result<(), String> {
    let call = call(ours)?;
    if &call["name"] == name { Ok(()) } else { Err(format!("tool_name: {call}")) }
}

/// The arguments of each call conform to the parameters of its tool.
fn arguments_conform(case: &Case, ours: &Value) -> Result<(), String> {
    call(ours)?;
    for call in at(ours, "choices.0.message.tool_calls.*.function") {
        let tools = at(&case.request, "body.tools.*.function");
        let tool = tools.iter().find(|tool| tool["name"] == call["name"]);
        let schema = &tool.ok_or_else(|| format!("no tool is called so: {call}"))?["parameters"];
        let arguments = call["arguments"].as_str().unwrap_or_default();
        let arguments = serde_json::from_str(arguments).map_err(|e| format!("{arguments:?}: {e}"))?;
        conforms(schema, &arguments, "arguments")?;
    }
    Ok(())
}

/// The recorded events, with their names.
fn recorded(case: &Case) -> Vec<(String, Value)> {
    let events = case.response["events"].as_array().into_iter().flatten();
    let named =
        |event: &Value| (event["event"].as_str().unwrap_or_default().to_owned(), event["data"].clone());
    events.map(named).filter(|(_, data)| !data.is_string()).collect()
}

/// Names in a row, each once.
fn folded(events: &[(String, Value)]) -> Vec<&str> {
    let mut names: Vec<&str> =
        events.iter().map(|(name, _)| name.as_str()).filter(|name| *name != "ping").collect();
    names.dedup();
    names
}

fn stream(rule: &str, value: &Value, case: &Case, answer: &Answer) -> Result<(), String> {
    let (ours, theirs) = (&answer.events, recorded(case));
    let all = |events: &[(String, Value)], path: &str| -> Vec<Value> {
        events.iter().flat_map(|(_, data)| at(data, path).into_iter().cloned()).collect()
    };
    let joined = |events: &[(String, Value)], path: &str| -> String {
        all(events, path)
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), String::from))
            .collect()
    };
    let differ = |ours: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug| {
        Err(format!("{rule}: {ours:?} instead of {theirs:?}"))
    };
    match rule {
        "concat_exact" => {
            let paths: Vec<&str> = value.as_str().into_iter().chain(texts(value)).collect();
            for path in paths {
                let (a, b) =
                    (joined(ours, path).replace("null", ""), joined(&theirs, path).replace("null", ""));
                if a != b {
                    return differ(&a, &b);
                }
            }
        }
        "last_finish_reason" => {
            let last = |events: &[(String, Value)]| {
                all(events, "choices.*.finish_reason").into_iter().rfind(|reason| !reason.is_null())
            };
            if last(ours) != last(&theirs) {
                return differ(&last(ours), &last(&theirs));
            }
        }
        "same_id" => {
            let mut ids = all(ours, "id");
            ids.dedup();
            if ids.len() != 1 {
                return differ(&ids, &"one id");
            }
        }
        "role_first" => {
            let first = all(&ours[..1.min(ours.len())], "choices.0.delta.role");
            if first != ["assistant"] {
                return differ(&first, &"assistant");
            }
        }
        "usage_chunk" => {
            let is_usage = |(_, data): &(String, Value)| {
                data["choices"] == serde_json::json!([]) && data["usage"].is_object()
            };
            if !ours.last().is_some_and(is_usage) {
                return differ(&ours.last(), &"a chunk with the usage");
            }
        }
        "event_order" => {
            if folded(ours) != folded(&theirs) {
                return differ(&folded(ours), &folded(&theirs));
            }
        }
        "keys_seen" => {
            for name in texts(value) {
                if !ours.iter().any(|(_, data)| data.get(name).is_some()) {
                    return differ(&"never", &name);
                }
            }
        }
        _ => return Err(format!("no comparison is called {rule}")),
    }
    Ok(())
}
