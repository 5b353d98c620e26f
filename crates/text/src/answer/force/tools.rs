//! The tools of a request, and the schemas of their arguments.

use serde_json::{Map, Value, json};

use super::CallChoice;
use super::error::{CallGrammarError, Fault};
use crate::answer::schema::Types;
use crate::constraint::COMBINING;

/// A tool: its name, and the schema of its arguments, which is an object.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) schema: Value,
}

/// The tools that may be called.
pub(super) fn chosen(tools: &[Value], choice: &CallChoice) -> Result<Vec<Tool>, CallGrammarError> {
    let mut all = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let function = tool.get("function").unwrap_or(tool);
        let name = function["name"].as_str().filter(|name| !name.is_empty());
        all.push((name.ok_or(CallGrammarError::Unnamed { index })?, &function["parameters"]));
    }
    if all.is_empty() {
        return Err(CallGrammarError::NoTools);
    }
    let known = all.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    all.retain(|(name, _)| choice.name.as_ref().is_none_or(|chosen| chosen == name));
    if let (Some(name), true) = (&choice.name, all.is_empty()) {
        return Err(CallGrammarError::Unknown { name: name.clone(), known });
    }
    let tool = |(name, parameters): (&str, &Value)| {
        let schema = arguments_schema(parameters)
            .map_err(|what| CallGrammarError::Schema { tool: name.to_owned(), what })?;
        Ok(Tool { name: name.to_owned(), schema })
    };
    all.into_iter().map(tool).collect()
}

/// The schema of arguments as that of an object with known properties.
fn arguments_schema(parameters: &Value) -> Result<Value, String> {
    let mut schema = match parameters {
        Value::Null => json!({"properties": {}}),
        Value::Object(_) => without_notes(parameters, true),
        _ => return Err("is no object".to_owned()),
    };
    if !Types::of(&schema, parameters).meets(Types::of_value(&json!({}))) {
        return Err("does not allow an object, which arguments are".to_owned());
    }
    let entries = schema.as_object_mut().expect("it was made or matched as an object");
    entries.insert("type".to_owned(), "object".into());
    if COMBINING.iter().all(|key| !entries.contains_key(*key)) {
        entries.entry("properties").or_insert_with(|| json!({}));
        entries.entry("additionalProperties").or_insert(false.into());
    }
    Ok(schema)
}

/// Keywords for readers; descriptions are most of a schema.
const NOTES: [&str; 5] = ["description", "title", "examples", "default", "$comment"];
/// Keywords whose values are schemas by names.
const BY_NAME: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords whose values are no schemas.
const DATA: [&str; 3] = ["enum", "const", "x-guidance"];

/// A schema without the keywords that constrain nothing, or schemas by names if not `is_schema`.
fn without_notes(value: &Value, is_schema: bool) -> Value {
    match value {
        Value::Object(entries) => {
            let kept = entries.iter().filter(|(key, _)| !(is_schema && NOTES.contains(&key.as_str())));
            let inner = |(key, value): (&String, &Value)| {
                let is_data = is_schema && DATA.contains(&key.as_str());
                let is_inner_schema = !is_schema || !BY_NAME.contains(&key.as_str());
                let value = if is_data { value.clone() } else { without_notes(value, is_inner_schema) };
                (key.clone(), value)
            };
            Value::Object(kept.map(inner).collect())
        }
        Value::Array(items) => items.iter().map(|item| without_notes(item, true)).collect(),
        other => other.clone(),
    }
}

/// The properties of an object with their schemas, and true for those that are required.
pub(super) fn properties(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let named = schema["properties"].as_object().into_iter().flatten();
    let mut all: Vec<_> =
        named.map(|(key, schema)| (key.as_str(), schema, required.contains(&key.as_str()))).collect();
    for key in required {
        if all.iter().all(|(known, ..)| *known != key) {
            all.push((key, &Value::Bool(true), true));
        }
    }
    all
}

/// A part of the schema `root` as a schema of its own, with the definitions that it may refer to.
pub(super) fn part(schema: &Value, root: &Value) -> Result<Value, Fault> {
    let mut entries = schema.as_object().cloned().unwrap_or_default();
    let mut stack: Vec<&Value> = vec![schema];
    while let Some(value) = stack.pop() {
        match value {
            Value::Array(items) => stack.extend(items),
            Value::Object(entries) => {
                let to = entries.get("$ref").and_then(Value::as_str).unwrap_or("#/$defs/");
                if !DEFINITIONS.iter().any(|key| to.starts_with(&format!("#/{key}/"))) {
                    return Err(Fault::Schema(format!(
                        "refers to `{to}`, which is not among its definitions"
                    )));
                }
                stack.extend(entries.values());
            }
            _ => {}
        }
    }
    for key in DEFINITIONS {
        if let (Some(definitions), false) = (root.get(key), entries.contains_key(key)) {
            entries.insert(key.to_owned(), definitions.clone());
        }
    }
    Ok(Value::Object(Map::from_iter(entries)))
}

/// Where schemas keep parts that they refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_constrains_nothing_is_left_out() {
        let noted = json!({"type": "object", "description": "x", "properties": {
            "description": {"type": "string", "title": "x", "default": "y"},
            "list": {"items": {"anyOf": [{"const": {"title": "x"}, "title": "x"}]}},
        }, "required": ["description"]});
        let schema = json!({"type": "object", "properties": {
            "description": {"type": "string"}, "list": {"items": {"anyOf": [{"const": {"title": "x"}}]}},
        }, "required": ["description"], "additionalProperties": false});
        assert_eq!(arguments_schema(&noted), Ok(schema));
        assert_eq!(
            arguments_schema(&Value::Null),
            Ok(json!({"properties": {}, "type": "object", "additionalProperties": false}))
        );
    }
}
