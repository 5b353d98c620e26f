//! Scans incomplete text: markers that may have begun, and the end of a JSON value.

/// The position of the first marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The marker `index` begins at `start`.
    At {
        /// Offset in bytes.
        start: usize,
        /// Index in the list of markers.
        index: usize,
    },
    /// No marker begins in this many bytes; the text after them may become one.
    NotBefore(usize),
}

/// Finds the first of `markers` in `text`, the longest one at that position. `last` is true if no more text
/// follows.
pub(super) fn find_marker(text: &str, markers: &[&str], last: bool) -> Found {
    for (start, _) in text.char_indices() {
        let rest = &text[start..];
        let (mut longest, mut may_come) = (None, 0);
        for (index, marker) in markers.iter().enumerate().filter(|(_, marker)| !marker.is_empty()) {
            if rest.starts_with(marker) && longest.is_none_or(|(n_byte, _)| marker.len() > n_byte) {
                longest = Some((marker.len(), index));
            } else if !last && marker.starts_with(rest) {
                may_come = may_come.max(marker.len());
            }
        }
        match longest {
            Some((n_byte, index)) if n_byte >= may_come => return Found::At { start, index },
            None if may_come == 0 => {}
            _ => return Found::NotBefore(start),
        }
    }
    Found::NotBefore(text.len())
}

/// The result of matching the start of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Head<T> {
    /// More text is needed to decide.
    Wait,
    /// No match.
    No,
    /// A match, and its length in bytes.
    Yes(usize, T),
}

/// Matches `marker` at the start of `text`, after white space.
pub(super) fn expect(text: &str, marker: &str, last: bool) -> Head<()> {
    let rest = text.trim_start();
    if rest.starts_with(marker) {
        Head::Yes(text.len() - rest.len() + marker.len(), ())
    } else if !last && marker.starts_with(rest) {
        Head::Wait
    } else {
        Head::No
    }
}

/// Maximum length of attributes in bytes.
const MAX_ATTRIBUTES: usize = 128;

/// Finds the end of `marker` near the start of `text`; attributes may precede it.
pub(super) fn find_near(text: &str, marker: &str, last: bool) -> Head<()> {
    match text.find(marker) {
        Some(n) if n <= MAX_ATTRIBUTES => Head::Yes(n + marker.len(), ()),
        None if !last && text.len() <= MAX_ATTRIBUTES + marker.len() => Head::Wait,
        _ => Head::No,
    }
}

/// Finds the end of a JSON object or list in streamed bytes.
///
/// Only brackets and strings are examined; the text between them is not validated.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonExtent {
    /// The closing brackets that are still expected, innermost last.
    closing: Vec<u8>,
    in_string: bool,
    is_escaped: bool,
}

impl JsonExtent {
    /// For text that continues inside an object.
    pub(super) fn inside_object() -> JsonExtent {
        JsonExtent { closing: vec![b'}'], ..JsonExtent::default() }
    }

    /// Takes the next bytes. `Some(Ok(n))`: the value ends after `n` of them. `Some(Err(n))`: after `n` of
    /// them follows a mismatched closing bracket. `None`: the value continues.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<Result<usize, usize>> {
        for (index, &byte) in bytes.iter().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => self.closing.push(b'}'),
                b'[' => self.closing.push(b']'),
                b'}' | b']' if self.closing.pop() != Some(byte) => return Some(Err(index)),
                b'}' | b']' if self.closing.is_empty() => return Some(Ok(index + 1)),
                _ => {}
            }
        }
        None
    }
}

/// The end of the JSON value at the start of `text`; a number or word ends before the first character that
/// cannot belong to it.
pub(super) fn json_value_end(text: &str, last: bool) -> Head<()> {
    match text.as_bytes().first() {
        None if last => Head::No,
        None => Head::Wait,
        Some(b'{' | b'[') => match JsonExtent::default().push(text.as_bytes()) {
            Some(Ok(end)) => Head::Yes(end, ()),
            Some(Err(_)) => Head::No,
            None if last => Head::No,
            None => Head::Wait,
        },
        Some(b'"') => match json_string(text, last) {
            Head::Yes(end, _) => Head::Yes(end, ()),
            Head::Wait => Head::Wait,
            Head::No => Head::No,
        },
        Some(_) => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            match text.find(|c| !is_part(c)) {
                Some(0) => Head::No,
                Some(end) => Head::Yes(end, ()),
                None if last => Head::Yes(text.len(), ()),
                None => Head::Wait,
            }
        }
    }
}

/// Decodes the JSON string at the start of `text`.
pub(super) fn json_string(text: &str, last: bool) -> Head<String> {
    let mut is_escaped = true; // the opening quote does not close the string
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if index == 0 && byte != b'"' => return Head::No,
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => {
                return match serde_json::from_str(&text[..index + 1]) {
                    Ok(string) => Head::Yes(index + 1, string),
                    Err(_) => Head::No,
                };
            }
            _ => {}
        }
    }
    if last { Head::No } else { Head::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_longest_marker_is_found_and_beginnings_wait() {
        let markers = ["<a>", "<a><b>", "x"];
        assert_eq!(find_marker("12<a>3", &markers, false), Found::At { start: 2, index: 0 });
        assert_eq!(find_marker("12<a><b>", &markers, false), Found::At { start: 2, index: 1 });
        assert_eq!(find_marker("12<a><", &markers, false), Found::NotBefore(2));
        assert_eq!(find_marker("12<a><", &markers, true), Found::At { start: 2, index: 0 });
        assert_eq!(find_marker("é<", &markers, false), Found::NotBefore(2));
        assert_eq!(find_marker("é<", &markers, true), Found::NotBefore(3));
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert_eq!(JsonExtent::default().push(br#"{"a": "}\"}"} x"#), Some(Ok(13)));
        assert_eq!(JsonExtent::default().push(b"{]"), Some(Err(1)));
        assert_eq!(JsonExtent::default().push(b"{[1]"), None);
        assert_eq!(json_value_end("12, 3", false), Head::Yes(2, ()));
        assert_eq!(json_value_end("12", false), Head::Wait);
        assert_eq!(json_value_end("12", true), Head::Yes(2, ()));
        assert_eq!(json_string(r#""a\"b" c"#, false), Head::Yes(6, "a\"b".into()));
        assert_eq!(json_string("nothing", false), Head::No);
    }
}
