//! The parts of an answer in order, as its events have them.

use chaski::text::{AnswerEvent, ToolCall};
use serde_json::{Map, Value};

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Reasoning(String),
    Content(String),
    /// A call. One that was cut, or whose arguments are no object, is a call, too, and not valid.
    Call(ToolCall),
}

/// All parts. Whole answers are made of them, so that they say the same as streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts(Vec<Part>);

impl Parts {
    /// Takes the next event.
    pub(crate) fn take(&mut self, event: &AnswerEvent) {
        match (event, self.0.last_mut()) {
            (AnswerEvent::Reasoning(text) | AnswerEvent::Content(text), _) if text.is_empty() => {}
            (AnswerEvent::Reasoning(more), Some(Part::Reasoning(text)))
            | (AnswerEvent::Content(more), Some(Part::Content(text))) => text.push_str(more),
            (AnswerEvent::Reasoning(text), _) => self.0.push(Part::Reasoning(text.clone())),
            (AnswerEvent::Content(text), _) => self.0.push(Part::Content(text.clone())),
            (AnswerEvent::CallBegin { name }, _) => {
                self.0.push(Part::Call(ToolCall { name: name.clone(), ..ToolCall::default() }));
            }
            (AnswerEvent::Arguments(text), Some(Part::Call(call))) => call.arguments.push_str(text),
            (AnswerEvent::CallEnd { is_valid, .. }, Some(Part::Call(call))) => call.is_valid = *is_valid,
            (AnswerEvent::Arguments(_) | AnswerEvent::CallEnd { .. }, _) => {}
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Part> {
        self.0.iter()
    }

    pub(crate) fn reasoning(&self) -> String {
        self.iter()
            .filter_map(|part| if let Part::Reasoning(text) = part { Some(text.as_str()) } else { None })
            .collect()
    }

    pub(crate) fn content(&self) -> String {
        self.iter()
            .filter_map(|part| if let Part::Content(text) = part { Some(text.as_str()) } else { None })
            .collect()
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
    }

    /// True if a call is complete.
    pub(crate) fn has_valid_call(&self) -> bool {
        self.calls().any(|call| call.is_valid)
    }
}

/// The arguments of a call as an object, for dialects that have no other form. Those of a call that was cut have the
/// values that are complete.
pub(crate) fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => map.into(),
        _ => complete(text).filter(Value::is_object).unwrap_or_else(|| Map::new().into()),
    }
}

/// The longest beginning of a JSON text that ends with a complete value, closed.
fn complete(text: &str) -> Option<Value> {
    // The brackets that are open, and the last place at which the text could be closed, with those open there.
    let (mut open, mut last) = (Vec::new(), (0, Vec::new()));
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                open.push(if byte == b'{' { '}' } else { ']' });
                last = (at + 1, open.clone());
            }
            b'}' | b']' => {
                open.pop();
                last = (at + 1, open.clone());
            }
            b',' => last = (at, open.clone()),
            _ => {}
        }
    }
    let closing: String = last.1.iter().rev().collect();
    serde_json::from_str(&format!("{}{closing}", &text[..last.0])).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_that_were_cut_have_what_is_complete() {
        for (text, expected) in [
            ("", json!({})),
            ("{", json!({})),
            (r#"{"a": "tru"#, json!({})),
            (r#"{"a": 12"#, json!({})),
            (r#"{"a": 12, "b"#, json!({"a": 12})),
            (r#"{"a": "x,}\"", "b": [1, 2"#, json!({"a": "x,}\"", "b": [1]})),
            (r#"{"a": {"b": {}"#, json!({"a": {"b": {}}})),
            (r#"{"a": {"b": 1}, "c": {"#, json!({"a": {"b": 1}, "c": {}})),
            (r#"{"a": 1}"#, json!({"a": 1})),
            ("[1]", json!({})),
            ("}", json!({})),
            (r#"{"a": 1]"#, json!({})),
        ] {
            assert_eq!(arguments(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_of_one_kind_are_one_part() {
        let mut parts = Parts::default();
        for text in ["a", "", "b"] {
            parts.take(&AnswerEvent::Content(text.into()));
        }
        parts.take(&AnswerEvent::CallBegin { name: "f".into() });
        parts.take(&AnswerEvent::Arguments("{\"x".into()));
        parts.take(&AnswerEvent::CallEnd { is_valid: false, written: "<tool_call>".into() });
        parts.take(&AnswerEvent::Content("c".into()));
        let call = ToolCall { name: "f".into(), arguments: "{\"x".into(), is_valid: false };
        let expected = [Part::Content("ab".into()), Part::Call(call), Part::Content("c".into())];
        assert_eq!(parts.0, expected);
        assert_eq!((parts.content(), parts.has_valid_call()), ("abc".into(), false));
    }
}
