//! The items of a response.

use serde_json::{Value, json};

use crate::ids;
use crate::parts::{Part, Parts};

/// Kinds of items.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Reasoning,
    Message,
    Call,
}

/// An item.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) id: String,
    call_id: String,
    /// Name of the tool, if it is a call.
    pub(super) name: String,
    /// Its text, or the arguments of the call.
    pub(super) text: String,
}

impl Item {
    pub(super) fn new(kind: Kind, name: &str) -> Item {
        let prefix = match kind {
            Kind::Reasoning => "rs_",
            Kind::Message => "msg_",
            Kind::Call => "fc_",
        };
        let call_id = if kind == Kind::Call { ids::new("call_") } else { String::new() };
        Item { kind, id: ids::new(prefix), call_id, name: name.into(), text: String::new() }
    }

    fn with_text(kind: Kind, name: &str, text: &str) -> Item {
        Item { text: text.into(), ..Item::new(kind, name) }
    }

    /// Its value; before the first text it has no content yet.
    pub(super) fn json(&self, status: &str) -> Value {
        let has_content = status != IN_PROGRESS;
        match self.kind {
            Kind::Reasoning => {
                let content = has_content.then(|| json!({"type": "reasoning_text", "text": self.text}));
                json!({
                    "type": "reasoning",
                    "id": self.id,
                    "summary": [],
                    "content": content.into_iter().collect::<Vec<_>>(),
                    "status": status,
                })
            }
            Kind::Message => {
                let content = has_content.then(|| self.part());
                json!({
                    "type": "message",
                    "id": self.id,
                    "role": "assistant",
                    "status": status,
                    "content": content.into_iter().collect::<Vec<_>>(),
                })
            }
            Kind::Call => json!({
                "type": "function_call",
                "id": self.id,
                "call_id": self.call_id,
                "name": self.name,
                "arguments": self.text,
                "status": status,
            }),
        }
    }

    /// The part of a message.
    pub(super) fn part(&self) -> Value {
        json!({"type": "output_text", "text": self.text, "annotations": [], "logprobs": []})
    }
}

pub(super) const IN_PROGRESS: &str = "in_progress";
pub(super) const COMPLETED: &str = "completed";
pub(super) const INCOMPLETE: &str = "incomplete";

/// The items of a whole answer. The last text is not complete if the answer was cut in it.
pub(super) fn of_answer(parts: &Parts, is_cut: bool) -> Vec<Value> {
    let last = parts.iter().count().saturating_sub(1);
    let item = |(i, part): (usize, &Part)| {
        let (item, is_whole) = match part {
            Part::Reasoning(text) => (Item::with_text(Kind::Reasoning, "", text), true),
            Part::Content(text) => (Item::with_text(Kind::Message, "", text), true),
            Part::Call(call) => (Item::with_text(Kind::Call, &call.name, &call.arguments), call.is_valid),
        };
        let is_open = is_cut && i == last && item.kind != Kind::Call;
        item.json(if is_whole && !is_open { COMPLETED } else { INCOMPLETE })
    };
    parts.iter().enumerate().map(item).collect()
}
