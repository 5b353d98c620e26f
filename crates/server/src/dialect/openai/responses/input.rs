//! The items of the input, as messages.

use chaski::Message;
use serde_json::Value;

use crate::dialect::conversation::{self, Said};
use crate::dialect::openai::messages::text_of_parts;
use crate::error::ApiError;
use crate::fields::Fields;

/// Types of items that are understood.
const TYPES: &str = "\"message\", \"reasoning\", \"function_call\" or \"function_call_output\"";

/// The messages of `instructions` and `input`.
pub(super) fn messages(fields: &Fields<'_>) -> Result<Vec<Message>, ApiError> {
    let mut conversation = Conversation::default();
    if let Some(text) = fields.text("instructions")? {
        conversation.messages.push(Message::new("system", text));
    }
    match fields.need("input", fields.get("input"))? {
        Value::String(text) => conversation.messages.push(Message::new("user", text.as_str())),
        Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                conversation.take(&Fields::of(item, format!("input[{i}]"))?)?;
            }
        }
        _ => return Err(fields.wrong("input", "a string or a list of at least one item")),
    }
    conversation.flush();
    Ok(conversation.messages)
}

/// Items of the assistant that follow each other are one message.
#[derive(Default)]
struct Conversation {
    messages: Vec<Message>,
    said: Said,
}

impl Conversation {
    /// Ends the message of the assistant.
    fn flush(&mut self) {
        self.messages.extend(std::mem::take(&mut self.said).message());
    }

    fn take(&mut self, item: &Fields<'_>) -> Result<(), ApiError> {
        match item.text("type")? {
            None | Some("message") => self.message(item),
            Some("reasoning") => {
                if !self.said.content.is_empty() || !self.said.calls.is_empty() {
                    self.flush();
                }
                self.said.reasoning.extend(reasoning(item)?);
                Ok(())
            }
            Some("function_call") => {
                let (id, name) = (item.text("call_id")?, item.text("name")?);
                let arguments = item.need("arguments", item.text("arguments")?)?;
                let call = conversation::call(item.need("call_id", id)?, item.need("name", name)?, arguments);
                self.said.calls.push(call);
                Ok(())
            }
            Some("function_call_output") => {
                self.flush();
                let id = item.need("call_id", item.text("call_id")?)?;
                let output = text(item, "output")?;
                let name = conversation::name_of_call(&self.messages, id).map(String::from);
                self.messages.push(conversation::result(id, name.as_deref(), output));
                Ok(())
            }
            Some(_) => Err(item.wrong("type", TYPES)),
        }
    }

    fn message(&mut self, item: &Fields<'_>) -> Result<(), ApiError> {
        let role = item.need("role", item.text("role")?)?;
        let content = text(item, "content")?;
        match role {
            "assistant" => {
                if !self.said.content.is_empty() || !self.said.calls.is_empty() {
                    self.flush();
                }
                self.said.content.push(content);
            }
            "user" | "system" | "developer" => {
                self.flush();
                self.messages.push(Message::new(role, content));
            }
            _ => {
                return Err(item.wrong("role", "\"user\", \"system\", \"developer\" or \"assistant\""));
            }
        }
        Ok(())
    }
}

/// A string, or the text of parts.
fn text(item: &Fields<'_>, name: &str) -> Result<String, ApiError> {
    match item.need(name, item.get(name))? {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => text_of_parts(parts, &item.path(name)),
        _ => Err(item.wrong(name, "a string or a list of parts")),
    }
}

/// The texts of a reasoning, or of its summary where they are missing.
fn reasoning(item: &Fields<'_>) -> Result<Vec<String>, ApiError> {
    for name in ["content", "summary"] {
        let mut texts = Vec::new();
        for (i, part) in item.list(name)?.unwrap_or_default().iter().enumerate() {
            let part = Fields::of(part, format!("{}[{i}]", item.path(name)))?;
            texts.push(part.need("text", part.text("text")?)?.to_owned());
        }
        if !texts.is_empty() {
            return Ok(texts);
        }
    }
    Ok(Vec::new())
}
