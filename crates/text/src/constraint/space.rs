//! White space between the tokens of JSON.

use serde_json::{Map, Value, json};

/// White space between two tokens: at most two characters, as a regular expression. A model that may indent fills
/// its answer with blanks.
#[cfg(feature = "constraint")]
const SPACE: &str = r" |\n[ \t]?|\r\n";

/// Limits the white space between two JSON tokens of a schema. Without the limit, models generate spaces until their
/// tokens run out.
#[cfg(feature = "constraint")]
pub(crate) fn with_short_space(schema: &Value) -> Value {
    with_space(schema, SPACE)
}

/// Limits it to this regular expression, unless the schema has its own.
pub(crate) fn with_space(schema: &Value, space: &str) -> Value {
    let mut schema = schema.clone();
    if let Some(schema) = schema.as_object_mut() {
        let options = schema.entry("x-guidance").or_insert_with(|| json!({}));
        let says = |options: &Map<String, Value>| options.keys().any(|k| k.starts_with("whitespace_"));
        if let Some(options) = options.as_object_mut().filter(|o| !says(o)) {
            options.insert("whitespace_pattern".into(), space.into());
        }
    }
    schema
}
