//! The events of a streamed message. One block is open at a time.

use chaski::text::AnswerEvent;
use serde_json::{Value, json};

use super::parts::{SIGNATURE, head, usage};
use crate::dialect::{Frame, Told};
use crate::ids;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
    ToolUse,
}

/// A message that is being streamed.
#[derive(Default)]
pub(super) struct Stream {
    /// Blocks that were opened.
    n_block: usize,
    open: Option<Kind>,
    has_calls: bool,
}

fn event(name: &'static str, mut data: Value) -> Frame {
    data["type"] = name.into();
    Frame::Event(name, data)
}

impl Stream {
    /// The head. Clients read here how much was cached; the first token is on its way.
    pub(super) fn start(&mut self, told: &Told, n_cached: usize) -> Vec<Frame> {
        let message = head(told, usage(told, n_cached, 1));
        vec![event("message_start", json!({"message": message})), event("ping", json!({}))]
    }

    pub(super) fn part(&mut self, part: &AnswerEvent) -> Vec<Frame> {
        match part {
            AnswerEvent::Reasoning(text) if !text.is_empty() => {
                self.text(Kind::Thinking, json!({"type": "thinking_delta", "thinking": text}))
            }
            AnswerEvent::Content(text) if !text.is_empty() => {
                self.text(Kind::Text, json!({"type": "text_delta", "text": text}))
            }
            AnswerEvent::CallBegin { name } => {
                let mut frames = self.close();
                let block = json!({"type": "tool_use", "id": ids::new("toolu_"), "name": name, "input": {}});
                frames.push(self.open(Kind::ToolUse, block));
                frames.push(self.delta(json!({"type": "input_json_delta", "partial_json": ""})));
                frames
            }
            AnswerEvent::Arguments(text) if !text.is_empty() => {
                vec![self.delta(json!({"type": "input_json_delta", "partial_json": text}))]
            }
            AnswerEvent::CallEnd { is_valid, .. } => {
                self.has_calls |= is_valid;
                self.close()
            }
            _ => Vec::new(),
        }
    }

    /// Text of this kind, in the open block if it has the same kind.
    fn text(&mut self, kind: Kind, delta: Value) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.open != Some(kind) {
            frames = self.close();
            let block = match kind {
                Kind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
                _ => json!({"type": "text", "text": ""}),
            };
            frames.push(self.open(kind, block));
        }
        frames.push(self.delta(delta));
        frames
    }

    fn open(&mut self, kind: Kind, block: Value) -> Frame {
        self.open = Some(kind);
        self.n_block += 1;
        event("content_block_start", json!({"index": self.index(), "content_block": block}))
    }

    /// Index of the last block.
    fn index(&self) -> usize {
        self.n_block.saturating_sub(1)
    }

    fn delta(&self, delta: Value) -> Frame {
        event("content_block_delta", json!({"index": self.index(), "delta": delta}))
    }

    /// Closes the block that is open.
    pub(super) fn close(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Some(kind) = self.open.take() else { return frames };
        if kind == Kind::Thinking {
            frames.push(self.delta(json!({"type": "signature_delta", "signature": SIGNATURE})));
        }
        frames.push(event("content_block_stop", json!({"index": self.index()})));
        frames
    }

    /// True if a call was complete.
    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    pub(super) fn end(delta: Value, usage: Value) -> [Frame; 2] {
        [event("message_delta", json!({"delta": delta, "usage": usage})), event("message_stop", json!({}))]
    }
}
