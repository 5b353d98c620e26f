//! Names and texts of files in messages, which may have any length and characters.

/// Control characters as escapes, so that a text stays in its line.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

/// A text in one line of at most `max` characters and a few more, without its middle if it is longer: names in files
/// may have any length.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    let text = one_line(text);
    let n = text.chars().count();
    if n <= max {
        return text;
    }
    let at = |i: usize| text.char_indices().nth(i).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (max - max / 4, max / 4);
    format!("{} ... ({} characters) ... {}", &text[..at(head)], n - head - tail, &text[at(n - tail)..])
}

/// Maximum characters of a name in a table.
pub(crate) const NAME: usize = 120;
/// Maximum characters of a line of a message, which may quote names of files and of the command line.
pub(crate) const LINE: usize = 1000;
