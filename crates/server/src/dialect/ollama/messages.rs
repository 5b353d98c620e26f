//! The messages of a conversation.

use chaski::Message;
use serde_json::Value;

use super::options::no_images;
use crate::dialect::conversation::{self, Said};
use crate::error::ApiError;
use crate::fields::Fields;

/// The messages of `messages`.
pub(super) fn messages(fields: &Fields<'_>) -> Result<Vec<Message>, ApiError> {
    let list = fields.need("messages", fields.list("messages")?)?;
    let mut conversation = Conversation::default();
    for (i, value) in list.iter().enumerate() {
        conversation.take(&Fields::of(value, format!("messages[{i}]"))?)?;
    }
    Ok(conversation.messages)
}

/// Calls may have no ids here, and results only the name of their tool; templates want ids.
#[derive(Default)]
struct Conversation {
    messages: Vec<Message>,
    n_call: usize,
    /// Ids and names of calls that have no result yet.
    open: Vec<(String, String)>,
}

impl Conversation {
    fn take(&mut self, message: &Fields<'_>) -> Result<(), ApiError> {
        let role = message.need("role", message.text("role")?)?;
        let content = message.text("content")?.unwrap_or("");
        no_images(message)?;
        match role {
            "system" | "user" => self.messages.push(Message::new(role, content)),
            "assistant" => {
                let said = self.said(message, content)?;
                self.messages.extend(said.message());
            }
            "tool" => {
                let name = message.text("tool_name")?.or(message.text("name")?);
                let (id, name) = self.answered(message.text("tool_call_id")?, name);
                self.messages.push(conversation::result(&id, name.as_deref(), content));
            }
            _ => return Err(message.wrong("role", "\"system\", \"user\", \"assistant\" or \"tool\"")),
        }
        Ok(())
    }

    fn said(&mut self, message: &Fields<'_>, content: &str) -> Result<Said, ApiError> {
        let texts = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty()).into_iter().collect();
        let reasoning = texts(message.text("thinking")?.unwrap_or(""));
        let mut said = Said { reasoning, content: texts(content), calls: Vec::new() };
        for (i, call) in message.list("tool_calls")?.unwrap_or_default().iter().enumerate() {
            let call = Fields::of(call, format!("{}[{i}]", message.path("tool_calls")))?;
            let function = call.need("function", call.object("function")?)?;
            let name = function.need("name", function.text("name")?)?;
            let arguments = function.object("arguments")?.map(|object| object.map().clone());
            let arguments = Value::Object(arguments.unwrap_or_default()).to_string();
            let id = call.text("id")?.map_or_else(|| self.new_id(), String::from);
            said.calls.push(conversation::call(&id, name, &arguments));
            self.open.push((id, name.to_owned()));
        }
        Ok(said)
    }

    /// Nine letters and digits, as the templates of Mistral require.
    fn new_id(&mut self) -> String {
        self.n_call += 1;
        format!("call{:05}", self.n_call - 1)
    }

    /// The call of a result with this id, or of this tool, or the oldest without a result.
    fn answered(&mut self, id: Option<&str>, name: Option<&str>) -> (String, Option<String>) {
        let place = match (id, name) {
            (Some(id), _) => self.open.iter().position(|(open, _)| open == id),
            (None, Some(name)) => self.open.iter().position(|(_, open)| open == name),
            (None, None) => (!self.open.is_empty()).then_some(0),
        };
        let (open_id, open_name) = place.map(|place| self.open.remove(place)).unzip();
        let id = id.map(String::from).or(open_id).unwrap_or_else(|| self.new_id());
        (id, name.map(String::from).or(open_name))
    }
}
