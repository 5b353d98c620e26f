//! The methods that split texts.

use super::fault::{Result, fail};
use super::run::Run;
use super::value::{Text, Value};

/// The parts before and behind `separator`, and itself.
pub(super) fn partition(run: &Run<'_>, text: &Text, separator: &Text, from_right: bool) -> Result<Value> {
    if separator.is_empty() {
        return fail("empty separator");
    }
    let sign: &str = separator;
    let found = if from_right { text.rsplit_once(sign) } else { text.split_once(sign) };
    let part = |part| Value::part(&run.meter, text, part);
    let none = || Value::constant("");
    let parts = match found {
        Some((before, behind)) => {
            vec![part(before)?, Value::part(&run.meter, separator, separator)?, part(behind)?]
        }
        None if from_right => vec![none(), none(), part(text)?],
        None => vec![part(text)?, none(), none()],
    };
    Value::tuple(&run.meter, parts)
}

/// At most `max + 1` parts between separators, by default between runs of white space.
pub(super) fn split(
    run: &Run<'_>,
    text: &Text,
    separator: Option<&str>,
    max: i128,
    from_right: bool,
) -> Result<Value> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let mut parts = run.items()?;
    let mut push = |part: &str| parts.push(Value::part(&run.meter, text, part)?);
    match separator {
        Some("") => return fail("empty separator"),
        Some(separator) if from_right => {
            text.rsplitn(max.saturating_add(1), separator).try_for_each(&mut push)?;
        }
        Some(separator) => text.splitn(max.saturating_add(1), separator).try_for_each(&mut push)?,
        None if from_right => {
            let mut rest = text.trim_end_matches(is_space);
            for _ in 0..max {
                let Some((before, word)) = rsplit_space(rest) else { break };
                push(word)?;
                rest = before.trim_end_matches(is_space);
            }
            if !rest.is_empty() {
                push(rest)?;
            }
        }
        None => {
            let mut rest = text.trim_start_matches(is_space);
            for _ in 0..max {
                let Some(end) = rest.find(is_space) else { break };
                push(&rest[..end])?;
                rest = rest[end..].trim_start_matches(is_space);
            }
            if !rest.is_empty() {
                push(rest)?;
            }
        }
    }
    if !from_right {
        return parts.list();
    }
    let mut reversed = run.items()?;
    parts.items().iter().rev().try_for_each(|part| reversed.push(part.clone()))?;
    reversed.list()
}

/// The text before the last word, with the space, and the word.
fn rsplit_space(text: &str) -> Option<(&str, &str)> {
    let (at, space) = text.char_indices().rev().find(|(_, c)| is_space(*c))?;
    Some((&text[..at], &text[at + space.len_utf8()..]))
}

/// The lines of a text, without and with their ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_end = |c: char| {
        matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        let (line, end) = match rest.find(is_end) {
            _ if rest.is_empty() => return None,
            Some(at) if rest[at..].starts_with("\r\n") => (at, at + 2),
            Some(at) => (at, at + rest[at..].chars().next().map_or(0, char::len_utf8)),
            None => (rest.len(), rest.len()),
        };
        let found = (&rest[..line], &rest[..end]);
        rest = &rest[end..];
        Some(found)
    })
}

/// Python's `str.splitlines`.
pub(super) fn split_lines(run: &Run<'_>, text: &Text, keep_ends: bool) -> Result<Value> {
    let mut list = run.items()?;
    for (line, whole) in lines(text) {
        list.push(Value::part(&run.meter, text, if keep_ends { whole } else { line })?)?;
    }
    list.list()
}

/// Python's `str.isspace` of a character.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Characters that regular expressions call those of words.
#[cfg(feature = "rare-filters")]
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
