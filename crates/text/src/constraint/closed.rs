//! Objects of a schema that have no other properties than those that it names.

#[cfg(feature = "constraint")]
use serde_json::Value;

/// Keywords that combine schemas, so that `properties` beside them are not all there is.
pub(crate) const COMBINING: [&str; 8] =
    ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas"];

/// Keywords whose values are schemas by names.
#[cfg(feature = "constraint")]
const BY_NAME: [&str; 3] = ["properties", "$defs", "definitions"];
/// Keywords whose values are schemas, or lists of them.
#[cfg(feature = "constraint")]
const INNER: [&str; 5] = ["items", "prefixItems", "additionalProperties", "anyOf", "oneOf"];

/// A schema whose objects have the properties that it names, and others only where it says so with
/// `additionalProperties`. Without that, small models write properties until their tokens run out. A schema with
/// `allOf` stays as it is: one of its parts would forbid the properties of the others.
#[cfg(feature = "constraint")]
pub(crate) fn closed(schema: &Value) -> Value {
    let mut closed = schema.clone();
    if !has_all_of(&closed) {
        close(&mut closed);
    }
    closed
}

#[cfg(feature = "constraint")]
fn has_all_of(value: &Value) -> bool {
    match value {
        Value::Object(entries) => entries.contains_key("allOf") || entries.values().any(has_all_of),
        Value::Array(items) => items.iter().any(has_all_of),
        _ => false,
    }
}

#[cfg(feature = "constraint")]
fn close(schema: &mut Value) {
    if let Value::Array(items) = schema {
        return items.iter_mut().for_each(close);
    }
    let Value::Object(entries) = schema else { return };
    let is_open = entries.contains_key("unevaluatedProperties")
        || COMBINING.iter().any(|keyword| entries.contains_key(*keyword));
    if entries.contains_key("properties") && !is_open {
        entries.entry("additionalProperties").or_insert(false.into());
    }
    for (keyword, value) in entries {
        match value {
            Value::Object(named) if BY_NAME.contains(&keyword.as_str()) => named.values_mut().for_each(close),
            value if INNER.contains(&keyword.as_str()) => close(value),
            _ => {}
        }
    }
}

#[cfg(all(test, feature = "constraint"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_have_the_properties_that_are_named() {
        let inner = json!({"properties": {"b": {"type": "string"}}});
        let schema = json!({
            "properties": {
                "a": {"items": inner}, "properties": {"$ref": "#/$defs/c"}, "enum": {"enum": [{"properties": {}}]},
            },
            "$defs": {"c": inner, "d": {"properties": {}, "additionalProperties": true}},
        });
        let closed = closed(&schema);
        let shut = json!({"properties": {"b": {"type": "string"}}, "additionalProperties": false});
        assert_eq!(closed["additionalProperties"], false);
        assert_eq!(closed["properties"]["a"]["items"], shut);
        assert_eq!(closed["properties"]["properties"], schema["properties"]["properties"]);
        assert_eq!(closed["properties"]["enum"], schema["properties"]["enum"], "values are no schemas");
        assert_eq!(
            (&closed["$defs"]["c"], &closed["$defs"]["d"]["additionalProperties"]),
            (&shut, &json!(true))
        );
    }

    #[test]
    fn schemas_that_are_put_together_stay_open() {
        for schema in [
            json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
            json!({"properties": {"a": {}}, "anyOf": [{"required": ["b"]}]}),
            json!({"properties": {"a": {}}, "patternProperties": {"^b": {}}}),
            json!({"type": "object"}),
        ] {
            assert_eq!(closed(&schema), schema);
        }
    }
}
