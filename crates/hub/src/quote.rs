//! Percent-encoding of revisions and paths.

/// Quotes one segment: everything but letters, digits and `-._~`, so also slashes.
pub fn segment(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => quoted.push(byte.into()),
            _ => quoted.push_str(&format!("%{byte:02X}")),
        }
    }
    quoted
}

/// Quotes a path segment by segment: its slashes stay.
pub fn path(text: &str) -> String {
    text.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Replaces `%XX` by its byte; `None` if that is no UTF-8. A `%` without two hex digits stays.
pub(crate) fn unquoted(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = |range| text.get(range).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at] == b'%').then(|| byte(at + 1..at + 3)).flatten() {
            Some(byte) if bytes[at + 1] != b'+' => {
                plain.push(byte);
                at += 3;
            }
            _ => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn revisions_are_quoted_wholly_and_paths_by_segments() {
        assert_eq!(segment("refs/pr/1"), "refs%2Fpr%2F1");
        assert_eq!(path("sub dir/ü#?.gguf"), "sub%20dir/%C3%BC%23%3F.gguf");
        assert_eq!(unquoted("a%2fb%20%C3%BC").as_deref(), Some("a/b ü"));
        assert_eq!(unquoted("100%").as_deref(), Some("100%"));
        assert_eq!(unquoted("%zz%+1").as_deref(), Some("%zz%+1"));
        assert_eq!(unquoted("%ff"), None);
    }

    proptest! {
        #[test]
        fn unquoting_is_the_reverse(text in "\\PC*") {
            prop_assert_eq!(unquoted(&segment(&text)), Some(text.clone()));
            prop_assert_eq!(unquoted(&path(&text)), Some(text));
        }
    }
}
