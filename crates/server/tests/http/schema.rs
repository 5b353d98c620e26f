//! Values against the JSON schemas of requests, without the grammars by which the server makes them.

use regex::Regex;
use serde_json::{Value, json};

/// Compares a value with a schema.
///
/// # Errors
/// The path of the first part that does not conform, or a keyword that this does not know.
pub(crate) fn conforms(schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else {
        return if schema == true { Ok(()) } else { Err(format!("{path}: {schema} allows nothing")) };
    };
    for (keyword, rule) in keywords {
        let fits = match keyword.as_str() {
            "title" | "description" => true,
            "type" => is_type(rule, value),
            "enum" => rule.as_array().is_some_and(|list| list.contains(value)),
            "const" => rule == value,
            "minimum" => at_least(value.as_f64(), rule.as_f64()),
            "maximum" => at_least(rule.as_f64(), value.as_f64()),
            "pattern" => value.as_str().is_none_or(|text| {
                Regex::new(rule.as_str().expect("a pattern is a text")).expect("a pattern").is_match(text)
            }),
            "minLength" => n_char(value).is_none_or(|n| rule.as_u64() <= Some(n)),
            "maxLength" => n_char(value).is_none_or(|n| Some(n) <= rule.as_u64()),
            "minItems" => value.as_array().is_none_or(|list| rule.as_u64() <= Some(list.len() as u64)),
            "maxItems" => value.as_array().is_none_or(|list| Some(list.len() as u64) <= rule.as_u64()),
            "items" => {
                let mut items = value.as_array().into_iter().flatten().enumerate();
                items.try_for_each(|(i, item)| conforms(rule, item, &format!("{path}[{i}]")))?;
                true
            }
            "required" => {
                let names = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                value.as_object().is_none_or(|map| names.into_iter().all(|name| map.contains_key(name)))
            }
            "properties" => {
                for (name, schema) in rule.as_object().into_iter().flatten() {
                    value
                        .get(name)
                        .map_or(Ok(()), |inner| conforms(schema, inner, &format!("{path}.{name}")))?;
                }
                true
            }
            "additionalProperties" => {
                let known = |name: &String| schema["properties"].get(name).is_some();
                let mut others = value.as_object().into_iter().flatten().filter(|(name, _)| !known(name));
                others.try_for_each(|(name, inner)| conforms(rule, inner, &format!("{path}.{name}")))?;
                true
            }
            "anyOf" => rule.as_array().into_iter().flatten().any(|one| conforms(one, value, path).is_ok()),
            _ => return Err(format!("{path}: the keyword `{keyword}` is not known here")),
        };
        if !fits {
            return Err(format!("{path}: {value} does not conform to `{keyword}`: {rule}"));
        }
    }
    Ok(())
}

/// True also where one of both is no number.
fn at_least(value: Option<f64>, least: Option<f64>) -> bool {
    value.zip(least).is_none_or(|(value, least)| value >= least)
}

fn n_char(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

fn is_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|x| x.fract() == 0.0),
        _ => false,
    };
    rule.as_array().map_or_else(|| is(rule), |names| names.iter().any(is))
}

#[test]
fn each_keyword_refuses_something() {
    for (schema, good, bad) in [
        (json!({"type": "integer"}), json!(3), json!(3.5)),
        (json!({"type": ["string", "null"]}), json!(null), json!(1)),
        (json!({"enum": ["a", 1]}), json!(1), json!("b")),
        (json!({"const": "42"}), json!("42"), json!(42)),
        (json!({"minimum": 1, "maximum": 20}), json!(20), json!(21)),
        (json!({"minimum": 1}), json!(1), json!(0)),
        (json!({"pattern": "^[A-Z][a-z]{2,6}$"}), json!("Fox"), json!("Fo")),
        (json!({"minLength": 2, "maxLength": 3}), json!("äöü"), json!("a")),
        (json!({"maxLength": 3}), json!("abc"), json!("abcd")),
        (json!({"minItems": 1, "maxItems": 2}), json!([1]), json!([])),
        (json!({"maxItems": 2}), json!([1, 2]), json!([1, 2, 3])),
        (json!({"items": {"type": "string"}}), json!(["a"]), json!(["a", 1])),
        (json!({"required": ["a"]}), json!({"a": 1}), json!({"b": 1})),
        (json!({"properties": {"a": {"const": 1}}}), json!({"b": 2}), json!({"a": 2})),
        (json!({"properties": {"a": {}}, "additionalProperties": false}), json!({"a": 2}), json!({"b": 2})),
        (json!({"anyOf": [{"const": 1}, {"const": 2}]}), json!(2), json!(3)),
    ] {
        assert_eq!(conforms(&schema, &good, ""), Ok(()), "{schema}");
        assert!(conforms(&schema, &bad, "").is_err(), "{schema} {bad}");
    }
    assert!(conforms(&json!({"not": {}}), &json!(1), "").is_err(), "an unknown keyword is told");
}
