//! The Harmony format of gpt-oss: messages with a header of channel and recipient, followed by text.

use super::scan::{Found, find_marker};
use super::tool_name::tool_name;

/// The destination of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Reasoning,
    Content,
    Tool(String),
}

pub(super) const START: &str = "<|start|>";
pub(super) const CHANNEL: &str = "<|channel|>";
pub(super) const MESSAGE: &str = "<|message|>";
/// Before the format of the text.
pub(super) const CONSTRAIN: &str = "<|constrain|>";
pub(super) const END: &str = "<|end|>";
/// The end of a message that calls a tool.
pub(super) const CALL: &str = "<|call|>";
/// Markers that end a message; the start of the next message ends it too.
pub(super) const ENDS: &[&str] = &[END, "<|return|>", CALL, START];

/// From one message of the model to the next.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const TO_NEXT: &str = "<|end|><|start|>assistant";
/// From a message to the content.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const TO_CONTENT: &str = "<|end|><|start|>assistant<|channel|>final<|message|>";

/// Maximum length of a header in bytes.
const MAX_HEADER: usize = 512;

/// The end of the header at the start of `text`, and its contents. `None` in the second case: not a header.
pub(super) enum Header {
    Wait,
    No,
    Yes(usize, Target),
}

/// Parses a header: `<|start|>assistant`, ` to=TOOL`, `<|channel|>CHANNEL`, ... up to `<|message|>`.
pub(super) fn header(text: &str, last: bool) -> Header {
    let rest = text.trim_start();
    let begins = [START, CHANNEL, "to="];
    if !begins.iter().any(|begin| rest.starts_with(begin)) {
        let may_come = !last && begins.iter().any(|begin| begin.starts_with(rest));
        return if may_come { Header::Wait } else { Header::No };
    }
    match find_marker(text, &[MESSAGE, END, "<|return|>", CALL], last) {
        Found::At { start, index: 0 } => Header::Yes(start + MESSAGE.len(), target(&text[..start])),
        Found::NotBefore(n) if !last && n <= MAX_HEADER => Header::Wait,
        _ => Header::No,
    }
}

fn target(header: &str) -> Target {
    let spaced = header.replace("<|", " <|").replace("|>", "|> ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let recipient = words.iter().find_map(|word| word.strip_prefix("to="));
    if let Some(recipient) = recipient.filter(|recipient| *recipient != "user") {
        return Target::Tool(tool_name(recipient));
    }
    let channel = words.iter().position(|word| *word == CHANNEL).and_then(|at| words.get(at + 1));
    if channel == Some(&"analysis") { Target::Reasoning } else { Target::Content }
}
