//! The head of a tool call: the tool's name, up to the start of its arguments.

use serde::de::IgnoredAny;

use super::scan::{Head, JsonExtent, expect, find_near, json_string, json_value_end};
use super::syntax::{Arguments, Form};
use super::tool_name::tool_name;

/// The contents of a call's head.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallHead {
    pub(super) name: String,
    pub(super) rest: Rest,
}

/// The text after the head.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rest {
    /// Nothing: the arguments are known, or there are none.
    Known(Option<String>),
    /// The arguments as JSON, then the end of the enclosing object (`true`) or a closing marker.
    Json { in_object: bool },
    /// Arguments between tags, in Gemma's notation, or in Python's, by the form of the call.
    Other,
}

/// Maximum length of a tool name, which bounds the search for its end.
const MAX_NAME: usize = 256;

/// Parses the head of a call at the start of `text`, after white space.
pub(super) fn call_head(form: &Form, text: &str, last: bool) -> Head<CallHead> {
    let rest = text.trim_start();
    let n_space = text.len() - rest.len();
    let head = match form {
        Form::None | Form::Harmony => Head::No,
        Form::Object { name, arguments, .. } => object_head(rest, name, arguments, last),
        Form::NameIsKey => name_is_key(rest, last),
        Form::Named { open, name_end, head_end, arguments, .. } => {
            named_head(rest, [open, name_end, head_end], *arguments, last)
        }
        Form::Python => {
            named_head(rest.strip_prefix('[').unwrap_or(rest), ["", "(", ""], Arguments::Gemma, last)
                .shifted(usize::from(rest.starts_with('[')))
        }
    };
    head.shifted(n_space)
}

impl<T> Head<T> {
    fn shifted(self, n_byte: usize) -> Head<T> {
        match self {
            Head::Yes(n, value) => Head::Yes(n + n_byte, value),
            other => other,
        }
    }
}

/// `open`, name, `name_end`, and everything up to `head_end`, unless that is empty.
fn named_head(
    text: &str,
    [open, name_end, head_end]: [&str; 3],
    arguments: Arguments,
    last: bool,
) -> Head<CallHead> {
    let n_open = match expect(text, open, last) {
        Head::Yes(n, ()) => n,
        Head::Wait => return Head::Wait,
        Head::No => return Head::No,
    };
    let rest = &text[n_open..];
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let n_name = match rest.find(|c| !is_part(c)) {
        Some(0) => return Head::No,
        Some(n) if n <= MAX_NAME => n,
        None if !last && rest.len() <= MAX_NAME => return Head::Wait,
        _ => return Head::No,
    };
    let n_end = match expect(&rest[n_name..], name_end, last) {
        Head::Yes(n, ()) => n,
        Head::Wait => return Head::Wait,
        Head::No => return Head::No,
    };
    let mut at = n_open + n_name + n_end;
    if !head_end.is_empty() {
        match find_near(&text[at..], head_end, last) {
            Head::Yes(n, ()) => at += n,
            Head::Wait => return Head::Wait,
            Head::No => return Head::No,
        }
    }
    let rest = match arguments {
        Arguments::Json if !text[at..].trim_start().starts_with('{') => {
            let is_all = text[at..].trim_start().is_empty();
            return if is_all && !last { Head::Wait } else { Head::No };
        }
        Arguments::Json => Rest::Json { in_object: false },
        Arguments::Tagged(_) | Arguments::Gemma => Rest::Other,
    };
    Head::Yes(at, CallHead { name: tool_name(&text[n_open..n_open + n_name]), rest })
}

/// An object with a name and arguments; the head ends where the arguments begin, if the name comes first.
fn object_head(text: &str, name_key: &str, arguments_key: &str, last: bool) -> Head<CallHead> {
    let (mut name, mut arguments) = (None, None);
    let end = each_field(text, last, |key, at| {
        let value = &text[at..];
        if key == name_key {
            match json_string(value, last) {
                Head::Yes(n, value) if !value.is_empty() => {
                    name = Some(value);
                    Head::Yes(n, true)
                }
                Head::Wait => Head::Wait,
                _ => Head::No,
            }
        } else if key == arguments_key && name.is_some() {
            match value.as_bytes().first() {
                Some(b'{') => Head::Yes(0, false),
                _ => Head::No,
            }
        } else {
            let end = json_value_end(value, last);
            if let (true, Head::Yes(n, ())) = (key == arguments_key, &end) {
                arguments = Some(value[..*n].to_owned());
            }
            match end {
                Head::Yes(n, ()) => Head::Yes(n, true),
                Head::Wait => Head::Wait,
                Head::No => Head::No,
            }
        }
    });
    match (end, name) {
        (Head::Wait, _) => Head::Wait,
        (Head::No, _) | (_, None) => Head::No,
        (Head::Yes(n, is_complete), Some(name)) => {
            if !is_complete {
                return Head::Yes(n, CallHead { name, rest: Rest::Json { in_object: true } });
            }
            if arguments.as_deref().is_some_and(|arguments: &str| !is_object(arguments)) {
                return Head::No;
            }
            Head::Yes(n, CallHead { name, rest: Rest::Known(arguments) })
        }
    }
}

/// True if `text` is a JSON object.
pub(super) fn is_object(text: &str) -> bool {
    // Numbers and characters beyond what a `Value` can hold are JSON too.
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// `{"f": {}}`, which is a call once it is complete.
fn name_is_key(text: &str, last: bool) -> Head<CallHead> {
    let list = text.strip_prefix('[').unwrap_or(text).trim_start();
    let n_before = text.len() - list.len();
    if list.is_empty() && !last {
        return Head::Wait;
    }
    if !list.starts_with('{') {
        return Head::No;
    }
    match JsonExtent::default().push(list.as_bytes()) {
        None if !last => Head::Wait,
        Some(Ok(end)) => {
            let mut fields = Vec::new();
            let walked = each_field(&list[..end], true, |key, at| {
                let value = &list[at..end];
                let value_end = json_value_end(value, true);
                if let Head::Yes(n, ()) = value_end {
                    fields.push((key.to_owned(), value[..n].to_owned()));
                }
                match value_end {
                    Head::Yes(n, ()) => Head::Yes(n, true),
                    _ => Head::No,
                }
            });
            match (walked, fields.pop()) {
                (Head::Yes(..), Some((name, arguments)))
                    if fields.is_empty() && !name.is_empty() && is_object(&arguments) =>
                {
                    Head::Yes(n_before + end, CallHead { name, rest: Rest::Known(Some(arguments)) })
                }
                _ => Head::No,
            }
        }
        _ => Head::No,
    }
}

/// Walks the fields of the object at the start of `text`, or at the start of a list there.
///
/// `visit` receives a key and the offset of its value; it returns the length of the value and whether to
/// continue. The result is the final offset, and whether it is after the object's closing bracket.
fn each_field(text: &str, last: bool, mut visit: impl FnMut(&str, usize) -> Head<bool>) -> Head<bool> {
    let mut at = 0;
    macro_rules! next {
        ($head:expr) => {
            match $head {
                Head::Yes(n, value) => {
                    at += n;
                    value
                }
                Head::Wait => return Head::Wait,
                Head::No => return Head::No,
            }
        };
    }
    if text.starts_with('[') {
        at += 1;
    }
    next!(expect(&text[at..], "{", last));
    if let Head::Yes(n, ()) = expect(&text[at..], "}", last) {
        return Head::Yes(at + n, true);
    }
    loop {
        at = text.len() - text[at..].trim_start().len();
        if at == text.len() && !last {
            return Head::Wait;
        }
        let key = next!(json_string(&text[at..], last));
        next!(expect(&text[at..], ":", last));
        at = text.len() - text[at..].trim_start().len();
        if at == text.len() {
            return if last { Head::No } else { Head::Wait };
        }
        let goes_on = next!(visit(&key, at));
        if !goes_on {
            return Head::Yes(at, false);
        }
        match (expect(&text[at..], ",", last), expect(&text[at..], "}", last)) {
            (Head::Yes(n, ()), _) => at += n,
            (_, Head::Yes(n, ())) => return Head::Yes(at + n, true),
            (Head::Wait, _) => return Head::Wait,
            _ => return Head::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: Form = Form::Object { name: "name", arguments: "arguments", first: "", alone: false };

    #[test]
    fn the_head_of_an_object_ends_at_its_arguments() {
        let head = |text: &str| call_head(&OBJECT, text, false);
        let json = |name: &str| CallHead { name: name.into(), rest: Rest::Json { in_object: true } };
        assert_eq!(head(r#" {"name": "f", "arguments": {"#), Head::Yes(28, json("f")));
        assert_eq!(head(r#"[{"id": [1], "name": "f", "arguments" : {"#), Head::Yes(40, json("f")));
        assert_eq!(head(r#"{"name": "f", "argum"#), Head::Wait);
        assert_eq!(head(r#"{"name": 1"#), Head::No);
        assert_eq!(head(r#"{"title": "x"}"#), Head::No);
        assert_eq!(head(r#"{"name": "f", "arguments": 3"#), Head::No);
        assert_eq!(head("hello"), Head::No);
        let known = |arguments: Option<&str>| CallHead {
            name: "f".into(),
            rest: Rest::Known(arguments.map(str::to_owned)),
        };
        let text = r#"{"arguments": {"x": 1}, "name": "f"}"#;
        assert_eq!(head(text), Head::Yes(text.len(), known(Some(r#"{"x": 1}"#))));
        assert_eq!(head(r#"{"name": "f"}"#), Head::Yes(13, known(None)));
    }
}
