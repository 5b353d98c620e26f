//! Arguments in notations other than JSON: between tags, in Gemma's, in Python's.

use serde::de::IgnoredAny;
use serde_json::{Map, Number, Value};

use super::scan::{Head, expect, find_near, json_value_end};
use super::schema::Types;
use super::syntax::{GEMMA_QUOTE, Tags};

/// The next item among tagged arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tagged {
    /// Another argument.
    Argument {
        key: String,
        value: String,
        /// The type given in the text, if any: true for a string.
        is_string: Option<bool>,
    },
    /// The end of the call.
    End,
}

/// Parses the next argument, or the `close` of the call. `types` gives the types that the argument of a key may
/// have: in an object or list that cannot be a string, no marker counts.
pub(super) fn tagged(
    tags: &Tags,
    close: &str,
    text: &str,
    types: impl Fn(&str) -> Types,
    last: bool,
) -> Head<Tagged> {
    let end = expect(text, close, last);
    if let Head::Yes(n, ()) = end {
        return Head::Yes(n, Tagged::End);
    }
    let at = match (expect(text, tags.open, last), end) {
        // While the closing marker is still possible, nothing else is certain.
        (_, Head::Wait) | (Head::Wait, _) => return Head::Wait,
        (Head::No, _) => return Head::No,
        (Head::Yes(n, ()), _) => n,
    };
    let wait = if last { Head::No } else { Head::Wait };
    let Some(n_key) = text[at..].find(tags.key_end) else { return wait };
    let key = &text[at..at + n_key];
    let mut at = at + n_key + tags.key_end.len();
    let mut is_string = None;
    if !tags.value.is_empty() {
        let n = match find_near(&text[at..], tags.value, last) {
            Head::Yes(n, ()) => n,
            Head::Wait => return Head::Wait,
            Head::No => return Head::No,
        };
        let attributes = &text[at..at + n];
        is_string = [
            ("string=\"true\"", true),
            ("type=\"string\"", true),
            ("string=\"false\"", false),
            ("type=\"", false),
        ]
        .into_iter()
        .find(|(sign, _)| attributes.contains(sign))
        .map(|(_, is_string)| is_string);
        at += n;
    }
    let close = tags.close.replace("{}", key);
    let is_json = is_string.or_else(|| types(key.trim()).is_string()) == Some(false);
    let mut from = 0;
    if is_json && text[at..].trim_start().starts_with(['{', '[']) {
        let n_space = text[at..].len() - text[at..].trim_start().len();
        match json_value_end(&text[at + n_space..], last) {
            Head::Yes(n, ()) => from = n_space + n,
            Head::Wait => return Head::Wait,
            Head::No => {}
        }
    }
    let Some(n_value) = text[at + from..].find(&close).map(|n| from + n) else { return wait };
    let value = &text[at..at + n_value];
    let value = value.strip_prefix('\n').unwrap_or(value);
    let value = value.strip_suffix('\n').unwrap_or(value);
    let argument = Tagged::Argument { key: key.trim().to_owned(), value: value.to_owned(), is_string };
    Head::Yes(at + n_value + close.len(), argument)
}

/// Converts a value written as plain text to the text of JSON, as [`plain_value`].
pub(super) fn plain_json(text: &str, is_string: Option<bool>, types: Types) -> String {
    // Numbers and characters beyond what a `Value` can hold stay as they are.
    let is_beyond =
        || serde_json::from_str::<Value>(text).is_err() && serde_json::from_str::<IgnoredAny>(text).is_ok();
    match is_string == Some(false) && is_beyond() {
        true => text.trim().to_owned(),
        false => plain_value(text, is_string, types).to_string(),
    }
}

/// Converts a value written as plain text to JSON.
///
/// A string if `is_string` is true. If it is unknown, the value is parsed as JSON, except for a quoted
/// string, whose quotes are part of the value; if that fails, or gives none of `types`, it is a string.
fn plain_value(text: &str, is_string: Option<bool>, types: Types) -> Value {
    let string = || Value::String(text.to_owned());
    if is_string == Some(true) {
        return string();
    }
    let value = serde_json::from_str(text).ok().or_else(|| python_value(text.trim()));
    let fits =
        |value: &Value| is_string.is_some() || (!value.is_string() && Types::of_value(value).meets(types));
    value.filter(fits).unwrap_or_else(string)
}

/// A word, list or dictionary in Python's notation.
fn python_value(text: &str) -> Option<Value> {
    if !text.starts_with(['{', '[']) {
        return python_word(text);
    }
    let mut reader = Reader { notation: PYTHON, text, at: 0 };
    let value = reader.value(0).ok()?;
    (reader.at == text.len()).then_some(value)
}

fn python_word(word: &str) -> Option<Value> {
    match word {
        "True" => Some(Value::Bool(true)),
        "False" => Some(Value::Bool(false)),
        "None" => Some(Value::Null),
        _ => None,
    }
}

/// A notation of values.
#[derive(Clone, Copy)]
pub(super) struct Notation {
    /// Delimiters of strings; in strings between single characters, a backslash escapes.
    quotes: &'static [&'static str],
    /// Separator of key and value.
    equals: char,
    /// Terminator of the arguments.
    end: char,
}

/// `key:<|"|>text<|"|>,other:1}`.
pub(super) const GEMMA: Notation = Notation { quotes: &[GEMMA_QUOTE], equals: ':', end: '}' };
/// `key="text", other=1)`.
pub(super) const PYTHON: Notation = Notation { quotes: &["\"", "'"], equals: '=', end: ')' };

/// Parses arguments including their closing bracket.
pub(super) fn arguments(notation: Notation, text: &str, last: bool) -> Head<Value> {
    let mut reader = Reader { notation, text, at: 0 };
    let result = reader.fields(notation.equals, notation.end, 0);
    match result {
        Ok(object) => Head::Yes(reader.at, object),
        Err(Broken::Short) if !last => Head::Wait,
        Err(_) => Head::No,
    }
}

struct Reader<'t> {
    notation: Notation,
    text: &'t str,
    at: usize,
}

/// The reason why a value cannot be parsed.
enum Broken {
    /// The text ends inside it.
    Short,
    /// It is malformed.
    Wrong,
}

/// Maximum nesting depth of values, so that no text can overflow the stack.
const MAX_DEPTH: usize = 64;

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Peeks at the next character, after skipping white space.
    fn peek(&mut self) -> Result<char, Broken> {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.rest().chars().next().ok_or(Broken::Short)
    }

    fn take(&mut self, wanted: char) -> Result<(), Broken> {
        if self.peek()? != wanted {
            return Err(Broken::Wrong);
        }
        self.at += wanted.len_utf8();
        Ok(())
    }

    fn fields(&mut self, equals: char, end: char, depth: usize) -> Result<Value, Broken> {
        let mut object = Map::new();
        loop {
            if self.peek()? == end {
                self.at += end.len_utf8();
                return Ok(Value::Object(object));
            }
            if !object.is_empty() {
                self.take(',')?;
            }
            self.peek()?;
            let key = match self.string()? {
                Some(key) => key,
                None => self.word(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$'))?.to_owned(),
            };
            self.take(equals)?;
            let value = self.value(depth + 1)?;
            object.insert(key, value);
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Broken> {
        if depth > MAX_DEPTH {
            return Err(Broken::Wrong);
        }
        let first = self.peek()?;
        if let Some(text) = self.string()? {
            return Ok(Value::String(text));
        }
        match first {
            '{' => {
                self.at += 1;
                self.fields(':', '}', depth)
            }
            '[' => {
                self.at += 1;
                let mut list = Vec::new();
                loop {
                    if self.peek()? == ']' {
                        self.at += 1;
                        return Ok(Value::Array(list));
                    }
                    if !list.is_empty() {
                        self.take(',')?;
                    }
                    list.push(self.value(depth + 1)?);
                }
            }
            _ => {
                let word = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))?;
                match serde_json::from_str::<Value>(word) {
                    Ok(value) => Ok(value),
                    Err(_) => python_word(word)
                        .or_else(|| Number::from_f64(chaski_jinja::parse_float(word)?).map(Value::Number))
                        .ok_or(Broken::Wrong),
                }
            }
        }
    }

    /// One or more characters of a kind, followed by something else.
    fn word(&mut self, is_part: impl Fn(char) -> bool) -> Result<&'t str, Broken> {
        let rest = self.rest();
        match rest.find(|c| !is_part(c)) {
            Some(0) => Err(Broken::Wrong),
            Some(end) => {
                self.at += end;
                Ok(&rest[..end])
            }
            None => Err(Broken::Short),
        }
    }

    /// A string, if there is one.
    fn string(&mut self) -> Result<Option<String>, Broken> {
        let rest = self.rest();
        for &quote in self.notation.quotes {
            if let Some(inner) = rest.strip_prefix(quote) {
                return if quote.len() > 1 {
                    let end = inner.find(quote).ok_or(Broken::Short)?;
                    self.at += 2 * quote.len() + end;
                    Ok(Some(inner[..end].to_owned()))
                } else {
                    let (text, n_byte) = escaped_string(inner, quote)?;
                    self.at += quote.len() + n_byte;
                    Ok(Some(text))
                };
            }
            if quote.starts_with(rest) {
                return Err(Broken::Short);
            }
        }
        Ok(None)
    }
}

/// A string up to `quote` with Python's escapes, and its length in bytes including the quote.
fn escaped_string(text: &str, quote: &str) -> Result<(String, usize), Broken> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if text[at..].starts_with(quote) {
            return Ok((out, at + quote.len()));
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        let (_, escape) = chars.next().ok_or(Broken::Short)?;
        match escape {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '\\' | '\'' | '"' => out.push(escape),
            // Python keeps unknown escapes.
            other => out.extend(['\\', other]),
        }
    }
    Err(Broken::Short)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_gemma_and_python_become_json() {
        let text = r#"a:<|"|>x, "y"}<|"|>,b:[1,2.5,true],c:{d:null}} tail"#;
        let expected = json!({"a": "x, \"y\"}", "b": [1, 2.5, true], "c": {"d": null}});
        assert_eq!(arguments(GEMMA, text, false), Head::Yes(text.len() - 5, expected));
        let text = r#"a="it's", b='x\'\n', c={"k": True}, d=[], e=-3)]"#;
        let expected = json!({"a": "it's", "b": "x'\n", "c": {"k": true}, "d": [], "e": -3});
        assert_eq!(arguments(PYTHON, text, false), Head::Yes(text.len() - 1, expected));
        assert_eq!(arguments(PYTHON, ")", false), Head::Yes(1, json!({})));
        assert_eq!(arguments(PYTHON, "a=", false), Head::Wait);
        assert_eq!(arguments(PYTHON, "a=", true), Head::No);
        assert_eq!(arguments(PYTHON, "a b", false), Head::No);
        let deep = format!("a={}", "[".repeat(100_000));
        assert_eq!(arguments(PYTHON, &deep, false), Head::No);
    }

    #[test]
    fn plain_values_are_json_where_they_can_be() {
        assert_eq!(plain_value("3", None, Types::ANY), json!(3));
        assert_eq!(plain_value("3", Some(true), Types::ANY), json!("3"));
        assert_eq!(plain_value("Paris", None, Types::ANY), json!("Paris"));
        assert_eq!(plain_value("\"Paris\"", None, Types::ANY), json!("\"Paris\""));
        assert_eq!(plain_value("True", None, Types::ANY), json!(true));
        assert_eq!(plain_value("[1]", Some(false), Types::ANY), json!([1]));
        assert_eq!(plain_value("{'a': [True, 'b']}", None, Types::ANY), json!({"a": [true, "b"]}));
        let text = Types::of(&json!({"type": ["string", "null"]}), &json!({}));
        assert_eq!(plain_value("3", None, text), json!("3"));
        assert_eq!(plain_value("null", None, text), json!(null));
        assert_eq!(plain_value("{'a'} is a set", None, Types::ANY), json!("{'a'} is a set"));
    }
}
