//! Escape sequences in texts of the command line (`--escape`).

/// A text with the characters that `\n`, `\r`, `\t`, `\'`, `\"`, `\\` and `\xHH` stand for; other backslashes stay.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out += &rest[..at];
        rest = &rest[at + 1..];
        let hex = || {
            let digits = rest.strip_prefix('x')?.get(..2)?;
            digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok())?
        };
        let (letter, n_byte) = match rest.chars().next() {
            Some('n') => ('\n', 1),
            Some('r') => ('\r', 1),
            Some('t') => ('\t', 1),
            Some(letter @ ('\'' | '"' | '\\')) => (letter, 1),
            // Bytes above 0x7f would be parts of a character.
            _ => hex().filter(u8::is_ascii).map_or(('\\', 0), |byte| (char::from(byte), 3)),
        };
        out.push(letter);
        rest = &rest[n_byte..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_become_characters_and_others_stay() {
        assert_eq!(unescaped(r#"a\nb\t\"c\" \\n \x41\x4 \xe9 \q \"#), "a\nb\t\"c\" \\n A\\x4 \\xe9 \\q \\");
        assert_eq!(unescaped("ü"), "ü");
    }
}
