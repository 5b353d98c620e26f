//! ollama's dialect.

pub(crate) mod chat;
pub(crate) mod generate;
mod lines;
mod messages;
pub(crate) mod models;
mod options;
pub(crate) mod pulls;

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::models::KeepAlive;
use crate::{clock, ids};

/// The beginning of the answers of all endpoints.
fn head(model: &str) -> Value {
    json!({"model": model, "created_at": clock::rfc3339()})
}

/// The wish of a request that asks for no answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Only {
    Load,
    Unload,
}

impl Only {
    /// The response to it.
    pub(crate) fn response(self, model: &str) -> Value {
        let mut body = head(model);
        body["done"] = true.into();
        body["done_reason"] = if self == Only::Load { "load" } else { "unload" }.into();
        body
    }

    /// The wish of a body without a prompt.
    fn of(fields: &Fields<'_>) -> Result<Only, ApiError> {
        let is_over = keep_alive(fields)? == Some(KeepAlive::For(Duration::ZERO));
        Ok(if is_over { Only::Unload } else { Only::Load })
    }
}

/// How long the model is to stay, if the request says so.
pub(crate) fn keep_alive(fields: &Fields<'_>) -> Result<Option<KeepAlive>, ApiError> {
    let text = match fields.get("keep_alive") {
        None => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    text.parse().map(Some).map_err(|error| fields.wrong("keep_alive", error))
}

/// A call as messages have it.
fn call(index: usize, name: &str, arguments: &str) -> Value {
    let arguments = crate::parts::arguments(arguments);
    json!({
        "id": ids::new("call_"),
        "function": {"index": index, "name": name, "arguments": arguments},
    })
}
