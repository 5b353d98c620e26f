//! The parts of an answer, as stream events and as a whole.

use serde_json::{Value, json};

use crate::template::Message;

/// An event: a part of an answer that is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerEvent {
    /// Reasoning text.
    Reasoning(String),
    /// Text of the answer.
    Content(String),
    /// Start of a tool call; its arguments follow until [`AnswerEvent::CallEnd`].
    CallBegin {
        /// The tool name.
        name: String,
    },
    /// The next piece of the arguments' JSON text.
    Arguments(String),
    /// End of the call.
    CallEnd {
        /// True if the arguments are a JSON object. They are not if the model stopped early or wrote
        /// malformed arguments; the caller should then not execute the call.
        is_valid: bool,
        /// The call as the model wrote it, with its markers, if it is not valid; empty otherwise.
        written: String,
    },
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool name.
    pub name: String,
    /// Its arguments, a JSON object if `is_valid`.
    pub arguments: String,
    /// As in [`AnswerEvent::CallEnd`]; `false` before that event.
    pub is_valid: bool,
}

/// A whole answer.
///
/// ```
/// use chaski_text::{Answer, AnswerParser, AnswerSyntax};
///
/// let mut parser = AnswerParser::new(AnswerSyntax::by_name("hermes").unwrap(), "", &[]);
/// let mut answer = Answer::default();
/// let text = "<think>Hm.</think>Wait. <tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
/// answer.extend(parser.push(text));
/// answer.extend(parser.finish());
/// assert_eq!(answer.reasoning, "Hm.");
/// assert_eq!(answer.content, "Wait.");
/// assert_eq!((answer.calls[0].name.as_str(), answer.calls[0].arguments.as_str()), ("now", "{}"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The reasoning.
    pub reasoning: String,
    /// The content. A call that is not valid is included as the model wrote it.
    pub content: String,
    /// The tool calls, in order.
    pub calls: Vec<ToolCall>,
}

impl Answer {
    /// Converts the answer to a message for the conversation, in OpenAI's format: the content, and
    /// `reasoning_content` and `tool_calls` if there are any. Calls that are not valid are only part of the
    /// content.
    ///
    /// `n_call_before` is the number of calls already in the conversation: the ids of these calls continue
    /// from it.
    pub fn into_message(self, n_call_before: usize) -> Message {
        let mut message = Message::new("assistant", self.content);
        if !self.reasoning.is_empty() {
            message.fields.insert("reasoning_content".into(), self.reasoning.into());
        }
        let calls: Vec<Value> = self
            .calls
            .into_iter()
            .filter(|call| call.is_valid)
            .zip(n_call_before..)
            .map(|(call, index)| {
                // Mistral's templates require nine characters.
                json!({"id": format!("call{index:05}"), "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments}})
            })
            .collect();
        if !calls.is_empty() {
            message.fields.insert("tool_calls".into(), calls.into());
        }
        message
    }
}

impl Extend<AnswerEvent> for Answer {
    fn extend<T: IntoIterator<Item = AnswerEvent>>(&mut self, events: T) {
        for event in events {
            match event {
                AnswerEvent::Reasoning(text) => self.reasoning += &text,
                AnswerEvent::Content(text) => self.content += &text,
                AnswerEvent::CallBegin { name } => {
                    self.calls.push(ToolCall { name, ..ToolCall::default() });
                }
                AnswerEvent::Arguments(text) => {
                    if let Some(call) = self.calls.last_mut() {
                        call.arguments += &text;
                    }
                }
                AnswerEvent::CallEnd { is_valid, written } => {
                    self.content += &written;
                    if let Some(call) = self.calls.last_mut() {
                        call.is_valid = is_valid;
                    }
                }
            }
        }
    }
}
