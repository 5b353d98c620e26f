//! Assembles the bytes of tokens into text without splitting a character.

/// Decodes a stream of token bytes as UTF-8 text.
///
/// A token may end inside a character; its bytes are held until the next token. Invalid bytes become U+FFFD,
/// exactly as [`String::from_utf8_lossy`] replaces them in the whole text.
///
/// ```
/// use chaski_text::TextStream;
///
/// let mut stream = TextStream::new();
/// assert_eq!(stream.push(b"caf\xc3"), Some("caf"));
/// assert_eq!(stream.push(b"\xa9"), Some("é"));
/// assert_eq!(stream.push(b"\xf0\x9f"), None);
/// assert_eq!(stream.finish(), Some("\u{fffd}"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    /// The first bytes of an incomplete character.
    held: Vec<u8>,
    text: String,
}

impl TextStream {
    /// An empty stream.
    pub fn new() -> TextStream {
        TextStream::default()
    }

    /// Takes the bytes of the next token and returns the completed text, if any.
    pub fn push(&mut self, bytes: &[u8]) -> Option<&str> {
        self.held.extend_from_slice(bytes);
        self.text.clear();
        let mut n_done = 0;
        for chunk in self.held.utf8_chunks() {
            self.text.push_str(chunk.valid());
            n_done += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if n_done + invalid.len() == self.held.len() && may_continue(invalid) {
                break;
            }
            self.text.push(char::REPLACEMENT_CHARACTER);
            n_done += invalid.len();
        }
        self.held.drain(..n_done);
        (!self.text.is_empty()).then_some(self.text.as_str())
    }

    /// True if the text so far ends within a character.
    pub fn is_within_character(&self) -> bool {
        !self.held.is_empty()
    }

    /// Ends the text: held bytes become U+FFFD. The stream is then empty and can be reused.
    pub fn finish(&mut self) -> Option<&str> {
        self.text.clear();
        if !self.held.is_empty() {
            self.text.push_str(&String::from_utf8_lossy(&self.held));
            self.held.clear();
        }
        (!self.text.is_empty()).then_some(self.text.as_str())
    }
}

/// True if `bytes` is a prefix of a character.
fn may_continue(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => false,
        Err(error) => error.valid_up_to() == 0 && error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(pieces: &[&[u8]]) -> String {
        let mut stream = TextStream::new();
        let mut text = String::new();
        for piece in pieces {
            text.extend(stream.push(piece));
        }
        text.extend(stream.finish());
        text
    }

    #[test]
    fn hopeless_bytes_do_not_wait() {
        let mut stream = TextStream::new();
        assert_eq!(stream.push(b"\xff"), Some("\u{fffd}"));
        assert_eq!(stream.push(b"\xc3"), None);
        assert_eq!(stream.push(b"a"), Some("\u{fffd}a"));
        assert_eq!(stream.finish(), None);
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            bytes in prop::collection::vec(prop::sample::select(b"a \xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80\xff\x80".to_vec()), 0..24),
            cuts in prop::collection::vec(0usize..24, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(collect(&pieces), String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn text_never_waits_for_more_than_a_character(text in "\\PC*", cut in 1usize..5) {
            let mut stream = TextStream::new();
            let mut collected = String::new();
            for piece in text.as_bytes().chunks(cut) {
                collected.extend(stream.push(piece));
                prop_assert!(stream.held.len() < 4);
            }
            prop_assert_eq!(stream.finish(), None);
            prop_assert_eq!(collected, text);
        }
    }
}
