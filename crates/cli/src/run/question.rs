//! A question to a chat model.

use chaski::ChatPrompt;
use serde_json::Value;

/// A prompt whose answer has parts: reasoning, content, tool calls.
pub(super) struct Question {
    /// The prompt, by the model's chat template.
    pub(super) prompt: ChatPrompt,
    /// The tools that the model may call.
    pub(super) tools: Vec<Value>,
}
