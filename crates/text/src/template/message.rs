//! The messages of a conversation, and the options of a rendering.

use serde::Serialize;
use serde_json::{Map, Value};

use super::LocalTime;

/// One message of a conversation.
///
/// It serialises to the object that templates read: `role`, `content`, then the other fields in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool`, ...
    pub role: String,
    /// What was said; `None` if the message has no content (an assistant that only calls tools).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// All others: `name`, `tool_calls`, `tool_call_id`, `reasoning_content`, ...
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Text.
    Text(String),
    /// Typed parts, such as `{"type": "text", "text": "..."}`.
    Parts(Vec<Value>),
    /// The JSON value `null`, which some clients send for no content.
    Null,
}

impl Message {
    /// A message of text.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Message {
        Message { role: role.into(), content: Some(Content::Text(text.into())), fields: Map::new() }
    }

    /// Reads a message as OpenAI's interface writes it; `None` if it is not an object with a `role`, or its
    /// `content` is neither text nor a list nor null.
    pub fn from_json(value: Value) -> Option<Message> {
        let Value::Object(mut fields) = value else { return None };
        let Value::String(role) = fields.shift_remove("role")? else { return None };
        let content = match fields.shift_remove("content") {
            None => None,
            Some(Value::Null) => Some(Content::Null),
            Some(Value::String(text)) => Some(Content::Text(text)),
            Some(Value::Array(parts)) => Some(Content::Parts(parts)),
            Some(_) => return None,
        };
        Some(Message { role, content, fields })
    }

    /// The text of the message; the texts of several parts are joined by line ends.
    pub fn text(&self) -> String {
        match &self.content {
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => {
                let texts: Vec<&str> =
                    parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
                texts.join("\n")
            }
            Some(Content::Null) | None => String::new(),
        }
    }
}

/// What a template is given beside the messages.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateOptions {
    /// End with what opens the assistant's answer.
    pub add_generation_prompt: bool,
    /// Text of the BOS token, empty if there is none.
    pub bos_token: String,
    /// Text of the EOS token, empty if there is none.
    pub eos_token: String,
    /// Whether the model shall think before it answers; `None` leaves it to the template.
    pub enable_thinking: Option<bool>,
    /// Tools that the model may call, as JSON schemas in OpenAI's form.
    pub tools: Vec<Value>,
    /// Further variables of the template; they win over all others.
    pub extra: Map<String, Value>,
    /// The time that `strftime_now` formats; if `None` the function does not exist, and templates that ask
    /// whether it does take a date of their own.
    pub now: Option<LocalTime>,
}

impl Default for TemplateOptions {
    /// A prompt for an answer, with thinking, without tools.
    fn default() -> TemplateOptions {
        TemplateOptions {
            add_generation_prompt: true,
            bos_token: String::new(),
            eos_token: String::new(),
            enable_thinking: Some(true),
            tools: Vec::new(),
            extra: Map::new(),
            now: None,
        }
    }
}
