//! Control characters as escapes, so that a text cannot command the terminal.

use std::borrow::Cow;

/// The text with control characters as escapes, except line breaks and tabs.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let is_command = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_command) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_command(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_of_terminals_are_visible_text() {
        assert_eq!(escaped("\x1b]0;title\x07\x1b[2J"), "\\u{1b}]0;title\\u{7}\\u{1b}[2J");
        assert_eq!(escaped("a\r\u{9b}31m\u{7f}\0"), "a\\r\\u{9b}31m\\u{7f}\\u{0}");
        assert!(matches!(escaped("a\tb\nc ü 日本"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(text in "(?s).{0,60}") {
            let found = escaped(&text);
            prop_assert!(!found.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
            // Everything else is unchanged, and in order.
            let plain = text.replace(|c: char| c.is_control(), "");
            let mut rest = found.chars();
            prop_assert!(plain.chars().all(|c| rest.any(|other| other == c)));
        }
    }
}
