//! The messages of a conversation, and the rendering options.

use serde::Serialize;
use serde_json::{Map, Value};

use super::LocalTime;

/// One message of a conversation.
///
/// It serialises to the object that templates expect: `role`, `content`, then the other fields in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool`, ...
    pub role: String,
    /// The content; `None` if the message has none (an assistant message with only tool calls).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// All other fields: `name`, `tool_calls`, `tool_call_id`, `reasoning_content`, ...
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// Typed parts, such as `{"type": "text", "text": "..."}`.
    Parts(Vec<Value>),
    /// The JSON value `null`, which some clients send for missing content.
    Null,
}

impl Message {
    /// A message with text content.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Message {
        Message { role: role.into(), content: Some(Content::Text(text.into())), fields: Map::new() }
    }

    /// Parses a message in OpenAI's format; `None` if it is not an object with a `role`, or its `content` is
    /// neither text nor a list nor null.
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

    /// The text of the message; the texts of several parts are joined with line breaks.
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

/// Template variables besides the messages.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateOptions {
    /// Append the tokens that open the assistant's answer.
    pub add_generation_prompt: bool,
    /// Text of the BOS token, empty if there is none.
    pub bos_token: String,
    /// Text of the EOS token, empty if there is none.
    pub eos_token: String,
    /// Enable or disable reasoning; `None` leaves it to the template.
    pub enable_thinking: Option<bool>,
    /// Tools that the model may call, as JSON schemas in OpenAI's format.
    pub tools: Vec<Value>,
    /// Additional template variables; they override all others.
    pub extra: Map<String, Value>,
    /// Parse the texts of special tokens in messages, tools and [`Self::extra`] as these tokens, so that a message can
    /// end its turn and begin another. Otherwise they are text. Read by those who tokenize the prompt.
    pub parse_special: bool,
    /// The time that `strftime_now` formats; if `None`, the function is undefined, and templates that check
    /// for it use a date of their own.
    pub now: Option<LocalTime>,
}

impl Default for TemplateOptions {
    /// Options for generating an answer, with reasoning and without tools.
    fn default() -> TemplateOptions {
        TemplateOptions {
            add_generation_prompt: true,
            bos_token: String::new(),
            eos_token: String::new(),
            enable_thinking: Some(true),
            tools: Vec::new(),
            extra: Map::new(),
            parse_special: false,
            now: None,
        }
    }
}
