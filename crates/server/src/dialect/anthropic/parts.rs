//! The parts that whole and streamed messages share.

use serde_json::{Value, json};

use crate::dialect::Told;

/// Models here sign nothing, but clients expect a signature beside each reasoning.
pub(super) const SIGNATURE: &str = "local";

/// A message without content.
pub(super) fn head(told: &Told, usage: Value) -> Value {
    json!({
        "id": told.id,
        "type": "message",
        "role": "assistant",
        "model": told.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

/// The tokens of a message; cached ones count apart.
pub(super) fn usage(told: &Told, n_cached: usize, n_token: usize) -> Value {
    json!({
        "input_tokens": told.n_prompt().saturating_sub(n_cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": n_cached,
        "output_tokens": n_token,
    })
}
