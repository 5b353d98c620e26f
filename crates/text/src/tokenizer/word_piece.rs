//! WordPiece: the tokenizer of BERT and of the embedding models derived from it.

use super::expression::Expression;
use super::unicode_form::Form;
use super::vocab::Vocab;

/// The characters removed from a text: control characters that are not white space, accents, and U+FFFD.
const DROPPED: &str = r"[[\p{C}\p{Mn}\x{FFFD}]&&[^\s]]+";

/// A word: one punctuation mark, one ideograph, or a run of other characters except white space.
fn word() -> String {
    const ALONE: &str = concat!(
        r"\p{P}$+<=>^`|~",
        r"\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}",
        r"\x{2B740}-\x{2B81F}\x{2B920}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}"
    );
    format!(r"[{ALONE}]|[^\s{ALONE}]+")
}

/// Splits words into the longest tokens, from the left; a word that cannot be split becomes one unknown
/// token.
#[derive(Debug)]
pub(super) struct WordPiece {
    dropped: Expression,
    word: Expression,
    unk: u32,
    /// Length of the longest token, in bytes.
    n_byte_longest: usize,
}

impl WordPiece {
    /// In `vocab`, tokens that begin a word begin with `▁`; `unk` is used for words without a tokenization.
    pub(super) fn new(vocab: &Vocab, unk: u32) -> WordPiece {
        let lengths = (0..vocab.n_text()).filter_map(|id| vocab.text(id)).map(str::len);
        WordPiece {
            dropped: Expression::new(DROPPED),
            word: Expression::new(&word()),
            unk,
            n_byte_longest: lengths.max().unwrap_or(0),
        }
    }

    /// Appends the ids of `text`, ignoring case and accents.
    ///
    /// # Source
    ///
    /// Devlin et al. 2018 (BERT), "uncased"; the ids equal llama.cpp's.
    pub(super) fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        let plain = plain(&self.dropped, text);
        let mut spelled = String::new();
        for word in self.word.matches(&plain) {
            spelled.clear();
            spelled.push('▁');
            spelled.push_str(&plain[word]);
            let n_before = out.len();
            if !self.spell(vocab, &spelled, out) {
                out.truncate(n_before);
                out.push(self.unk);
            }
        }
    }

    /// Appends the tokens of one word; `false` if some part of it is not a token.
    fn spell(&self, vocab: &Vocab, word: &str, out: &mut Vec<u32>) -> bool {
        let mut rest = word;
        while !rest.is_empty() {
            let longest = rest.len().min(self.n_byte_longest);
            let ends = (1..=longest).rev().filter(|&end| rest.is_char_boundary(end));
            let found = ends.filter_map(|end| Some((vocab.id(&rest[..end])?, end))).next();
            let Some((id, end)) = found else { return false };
            out.push(id);
            rest = &rest[end..];
        }
        true
    }
}

/// The text in lower case, without the removed characters.
fn plain(dropped: &Expression, text: &str) -> String {
    let text = Form::Nfd.of(text);
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for found in dropped.matches(&text) {
        out.push_str(&text[from..found.start]);
        from = found.end;
    }
    out.push_str(&text[from..]);
    chaski_jinja::lower(&out)
}

/// All expressions of this file, for tests.
#[cfg(test)]
pub(super) fn expressions() -> impl Iterator<Item = String> {
    [DROPPED.to_owned(), word()].into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_ideographs_are_words_and_accents_are_dropped() {
        let words = |text: &str| -> Vec<String> {
            let plain = plain(&Expression::new(DROPPED), text);
            Expression::new(&word()).matches(&plain).map(|word| plain[word].to_owned()).collect()
        };
        assert_eq!(words("Café, Ünï"), ["cafe", ",", "uni"]);
        assert_eq!(words("a\u{0}b\u{200d}c\td"), ["abc", "d"]);
        assert_eq!(words("x=我想y~1"), ["x", "=", "我", "想", "y", "~", "1"]);
    }
}
