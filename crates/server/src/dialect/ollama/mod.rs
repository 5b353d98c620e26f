//! ollama's dialect.

pub(crate) mod chat;
pub(crate) mod generate;
mod lines;
mod messages;
pub(crate) mod models;
mod options;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::model::Facts;
use crate::{clock, ids};

/// The beginning of the answers of all endpoints.
fn head(model: &str) -> Value {
    json!({"model": model, "created_at": clock::rfc3339()})
}

/// The response to a request that only wants the model to be loaded. It always is, and stays so.
///
/// # Errors
/// [`Kind::Unsupported`] if it wants the model to be unloaded.
fn loaded(fields: &Fields<'_>, facts: &Facts) -> Result<Value, ApiError> {
    if unloads(fields.get("keep_alive")) {
        return Err(ApiError::new(Kind::Unsupported, "the server keeps its model loaded; stop the server"));
    }
    let mut body = head(&facts.id);
    body["done"] = true.into();
    body["done_reason"] = "load".into();
    Ok(body)
}

/// True if this time is 0, as a number or with a unit.
fn unloads(keep_alive: Option<&Value>) -> bool {
    match keep_alive {
        Some(Value::String(text)) => {
            text.trim_end_matches(char::is_alphabetic).parse::<f64>().is_ok_and(|time| time == 0.0)
        }
        Some(value) => value.as_f64() == Some(0.0),
        None => false,
    }
}

/// A call as messages have it.
fn call(index: usize, name: &str, arguments: &str) -> Value {
    // The arguments of valid calls are objects.
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    json!({
        "id": ids::new("call_"),
        "function": {"index": index, "name": name, "arguments": arguments},
    })
}
