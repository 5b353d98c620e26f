//! The messages of a chat, and their file.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use chaski::Message;
use serde_json::Value;

use crate::input::read_text;
use crate::output::{Part, publish};

/// A conversation without its system message.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    /// The oldest messages, which the context has no room for.
    n_dropped: usize,
}

impl Conversation {
    /// All messages.
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Messages that the model still sees.
    pub(super) fn kept(&self) -> &[Message] {
        &self.messages[self.n_dropped..]
    }

    /// Messages that the model no longer sees.
    pub(super) fn n_dropped(&self) -> usize {
        self.n_dropped
    }

    /// Drops more of the oldest messages from what the model sees.
    pub(super) fn drop_oldest(&mut self, n: usize) {
        self.n_dropped = (self.n_dropped + n).min(self.messages.len());
    }

    /// Lets the model see all messages again, as far as the context has room for them.
    pub(super) fn see_all(&mut self) {
        self.n_dropped = 0;
    }

    /// Number of tool calls.
    pub(super) fn n_call(&self) -> usize {
        let calls = self.messages.iter().filter_map(|m| m.fields.get("tool_calls")?.as_array());
        calls.map(Vec::len).sum()
    }

    pub(super) fn extend(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.messages.extend(messages);
    }

    pub(super) fn clear(&mut self) {
        *self = Conversation::default();
    }

    /// The text of the last message of the user.
    pub(super) fn last_question(&self) -> Option<String> {
        Some(self.messages.iter().rfind(|m| m.role == "user")?.text())
    }

    /// Removes the last turn and returns it: the last message of the user, and all after it.
    pub(super) fn pop_turn(&mut self) -> Option<Vec<Message>> {
        let at = self.messages.iter().rposition(|m| m.role == "user")?;
        Some(self.cut(at))
    }

    /// Removes the answer at the end, if there is one.
    pub(super) fn pop_answer(&mut self) -> Option<Message> {
        let last = self.messages.last()?;
        if last.role == "assistant" { self.cut(self.messages.len() - 1).pop() } else { None }
    }

    /// Removes the messages from `at` on. What was dropped for them may be seen again.
    fn cut(&mut self, at: usize) -> Vec<Message> {
        if at <= self.n_dropped {
            self.n_dropped = 0;
        }
        self.messages.split_off(at)
    }

    /// Writes system message and messages as a JSON list in OpenAI's format.
    ///
    /// # Errors
    /// If the file cannot be written, or is another one than a conversation.
    pub(super) fn save(&self, path: &Path, system: Option<&str>) -> anyhow::Result<()> {
        if path.is_file() && read(path).is_err() {
            bail!("`{}` exists and is not a conversation; choose another name", path.display());
        }
        let system = system.map(|text| Message::new("system", text));
        let all: Vec<&Message> = system.iter().chain(&self.messages).collect();
        let (part, mut file) = Part::create(path, &[])?;
        file.write_all(serde_json::to_string_pretty(&all)?.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        publish(vec![part])
    }

    /// A conversation of [`Self::save`], or any list of messages in OpenAI's format, and its system message.
    ///
    /// # Errors
    /// If the file cannot be read, or is something else.
    pub(super) fn load(path: &Path) -> anyhow::Result<(Option<String>, Conversation)> {
        let mut messages = read(path)?;
        let begins = messages.first().is_some_and(|m| m.role == "system");
        let system = begins.then(|| messages.remove(0).text());
        Ok((system, Conversation { messages, n_dropped: 0 }))
    }
}

/// Messages of a file: a list, or an object with one, as in a request.
fn read(path: &Path) -> anyhow::Result<Vec<Message>> {
    let name = path.display();
    let expected = "expected a JSON list of messages";
    let text = read_text(path)?;
    let value: Value = serde_json::from_str(&text).with_context(|| format!("`{name}`: {expected}"))?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match object.remove("messages") {
            Some(Value::Array(list)) => list,
            _ => bail!("`{name}`: {expected}, or an object with `messages`"),
        },
        _ => bail!("`{name}`: {expected}"),
    };
    let message = |(i, value)| {
        Message::from_json(value).with_context(|| {
            format!(
                "`{name}`, message {}: expected an object with a `role`, and text or parts as `content`",
                i + 1
            )
        })
    };
    list.into_iter().enumerate().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(n: usize) -> Conversation {
        let turn = |i| [Message::new("user", format!("q{i}")), Message::new("assistant", format!("a{i}"))];
        Conversation { messages: (0..n).flat_map(turn).collect(), n_dropped: 0 }
    }

    #[test]
    fn files_hold_all_messages() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        let mut saved = conversation(3);
        let call = serde_json::json!([{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
        saved.messages[1].fields.insert("tool_calls".into(), call);
        saved.drop_oldest(2);
        for system in [Some("Be kind."), None] {
            // The second one replaces the first.
            saved.save(&path, system).unwrap();
            let (found, loaded) = Conversation::load(&path).unwrap();
            assert_eq!((found.as_deref(), loaded.messages()), (system, saved.messages()));
        }
        std::fs::write(&path, r#"{"messages": [{"role": "user", "content": "x"}], "model": "y"}"#).unwrap();
        assert_eq!(Conversation::load(&path).unwrap().1.last_question().as_deref(), Some("x"));
    }

    #[test]
    fn other_files_are_neither_loaded_nor_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.json");
        for (text, says) in [
            ("hello", "expected a JSON list of messages"),
            ("{}", "or an object with `messages`"),
            ("3", "expected a JSON list of messages"),
            (
                "[{\"role\": \"user\", \"content\": \"a\"}, {\"content\": 3}]",
                "message 2: expected an object with a `role`",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let e = format!("{:#}", Conversation::load(&path).unwrap_err());
            assert!(e.contains(says) && e.contains("notes.json"), "{e}");
            let e = conversation(1).save(&path, None).unwrap_err().to_string();
            assert!(e.contains("exists and is not a conversation"), "{e}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(conversation(1).save(&folder.path().join("no/such/folder.json"), None).is_err());
        assert!(Conversation::load(&folder.path().join("none.json")).is_err());
    }

    #[test]
    fn turns_and_answers_are_taken_from_the_end() {
        let mut c = conversation(3);
        assert_eq!(c.pop_answer().unwrap().text(), "a2");
        assert_eq!(c.pop_answer(), None);
        assert_eq!(c.pop_turn().unwrap().len(), 1);
        c.drop_oldest(2);
        assert_eq!(c.kept().len(), 2);
        assert_eq!(c.pop_turn().unwrap().len(), 2);
        // The first turn fits again.
        assert_eq!((c.kept().len(), c.n_dropped()), (2, 0));
        assert_eq!(c.pop_turn().unwrap().len(), 2);
        assert!(c.pop_turn().is_none() && c.last_question().is_none());
    }
}
