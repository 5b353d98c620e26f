//! Texts that certainly have more tokens than a context are refused before they are tokenized, which takes tens of
//! bytes of memory for each of theirs.

use chaski_jinja::Rendered;

use super::special::WHITE;
use super::unicode_form::Form;
use super::vocab::Vocab;
use super::{AddSpecial, Model, ParseSpecial, Tokenizer, TokenizerError, byte_to_char};

/// A tokenizer of texts that may have a limited number of tokens.
///
/// A text that certainly has more is [`TokenizerError::TooLong`]. The number is that of its bytes by those of the
/// longest token, so a text may still turn out to have more tokens.
#[derive(Clone, Copy, Debug)]
pub struct Within<'a> {
    tokenizer: &'a Tokenizer,
    limit: usize,
}

impl Within<'_> {
    /// As [`Tokenizer::encode`].
    ///
    /// # Errors
    ///
    /// As there, and [`TokenizerError::TooLong`].
    pub fn encode(
        self,
        text: &str,
        add: AddSpecial,
        parse: ParseSpecial,
    ) -> Result<Vec<u32>, TokenizerError> {
        self.tokenizer.encode_parts(text, add, parse, &[], self.limit)
    }

    /// As [`Tokenizer::encode_traced`].
    ///
    /// # Errors
    ///
    /// As there, and [`TokenizerError::TooLong`].
    pub fn encode_traced(self, prompt: &Rendered, add: AddSpecial) -> Result<Vec<u32>, TokenizerError> {
        self.tokenizer.encode_parts(&prompt.text, add, ParseSpecial::Yes, &prompt.data, self.limit)
    }

    /// As [`Tokenizer::encode_pair`]. Each of the two texts is bounded by the limit.
    ///
    /// # Errors
    ///
    /// As there, and [`TokenizerError::TooLong`].
    pub fn encode_pair(self, first: &str, second: &str) -> Result<Vec<u32>, TokenizerError> {
        let t = self.tokenizer;
        let mut ids: Vec<u32> = t.bos().filter(|_| t.add_bos).into_iter().collect();
        ids.extend(self.encode(first, AddSpecial::No, ParseSpecial::No)?);
        ids.extend_from_slice(&t.between);
        ids.extend(self.encode(second, AddSpecial::No, ParseSpecial::No)?);
        ids.extend(t.end_of_pair);
        Ok(ids)
    }
}

impl Tokenizer {
    /// The same for texts of at most `limit` tokens, such as a context has.
    pub fn within(&self, limit: usize) -> Within<'_> {
        Within { tokenizer: self, limit }
    }

    /// Refuses a text that certainly has more than `limit` tokens.
    pub(super) fn check_length(&self, text: &str, limit: usize) -> Result<(), TokenizerError> {
        let Some(n_byte_per_token) = self.n_byte_per_token.filter(|_| text.len() > limit) else {
            return Ok(());
        };
        let n_byte = match self.special.strips() {
            true => text.bytes().filter(|byte| !WHITE.contains(&char::from(*byte))).count(),
            false => text.len(),
        };
        let at_least = n_byte.div_ceil(n_byte_per_token);
        if at_least > limit { Err(TokenizerError::TooLong { at_least, limit }) } else { Ok(()) }
    }
}

/// Bytes of a text in some form of Unicode for one byte of it in another, at most.
const FORM: usize = 4;

/// Bytes of a text that one token represents at most.
///
/// `None` where a token may stand for any number: a vocabulary that lacks bytes, whose characters are then left out;
/// WordPiece, where an unknown word is one token; Unigram, where the file may replace texts by nothing, so that only
/// the replaced text has a bound.
pub(super) fn n_byte_per_token(model: &Model, vocab: &Vocab) -> Option<usize> {
    // The other bytes are not in UTF-8.
    let bytes = || (0..=0xF4u8).filter(|byte| !matches!(byte, 0xC0 | 0xC1));
    let (has_bytes, form) = match model {
        Model::Spm(_) | Model::Gemma4(_) => (bytes().all(|byte| vocab.byte(byte).is_some()), None),
        Model::Bpe(bpe) => {
            let has = |byte| vocab.id(byte_to_char(byte).encode_utf8(&mut [0; 4])).is_some();
            (bytes().all(has), bpe.form)
        }
        Model::WordPiece(_) | Model::Unigram(_) | Model::None { .. } => return None,
    };
    // A character of GPT-2's alphabet is a byte, and no character is less.
    let longest = vocab.texts().map(str::len).max().filter(|_| has_bytes)?;
    Some(longest * form.map_or(1, |_: Form| FORM))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use unicode_normalization::UnicodeNormalization as _;

    use super::super::TokenizerSpec;
    use super::*;

    /// A tokenizer with all bytes and some words.
    fn tokenizer(model: &str, words: &[&str], change: impl FnOnce(&mut TokenizerSpec)) -> Tokenizer {
        let byte = |byte| if model == "gpt2" { byte_to_char(byte).into() } else { format!("<0x{byte:02X}>") };
        let tokens: Vec<String> =
            (0..=255).map(byte).chain(words.iter().map(|word| (*word).to_owned())).collect();
        let (scores, token_types) = (vec![0.0; tokens.len()], vec![1; tokens.len()]);
        let model = model.into();
        let mut spec =
            TokenizerSpec { model, tokens, scores, token_types, unk: Some(0), ..TokenizerSpec::default() };
        spec.merges = vec!["a b".into()];
        change(&mut spec);
        Tokenizer::from_spec(spec).expect("a tokenizer")
    }

    /// The number of tokens that refuses a text.
    fn at_least(tokenizer: &Tokenizer, text: &str, limit: usize) -> Option<usize> {
        match tokenizer.within(limit).encode(text, AddSpecial::No, ParseSpecial::Yes) {
            Err(TokenizerError::TooLong { at_least, limit: found }) => {
                assert_eq!(found, limit);
                Some(at_least)
            }
            found => {
                found.expect("a text");
                None
            }
        }
    }

    #[test]
    fn a_text_has_a_token_for_as_many_bytes_as_the_longest() {
        for model in ["llama", "gpt2", "gemma4"] {
            let t = tokenizer(model, &["abcdefgh"], |_| ());
            assert_eq!(at_least(&t, &"abcdefgh".repeat(100), 99), Some(100), "{model}");
            assert_eq!(at_least(&t, &"a".repeat(801), 100), Some(101), "{model}");
            assert_eq!(at_least(&t, &"a".repeat(800), 100), None, "{model}");
            assert_eq!(at_least(&t, &"a".repeat(8000), usize::MAX), None, "{model}");
        }
    }

    #[test]
    fn both_texts_of_a_pair_and_a_prompt_of_a_template_are_bounded() {
        let (t, long) = (tokenizer("gpt2", &[], |_| ()), "é".repeat(500));
        let prompt = Rendered { text: long.clone(), data: Vec::new() };
        for found in [
            t.within(9).encode_traced(&prompt, AddSpecial::Yes),
            t.within(9).encode_pair("a", &long),
            t.within(9).encode_pair(&long, "a"),
        ] {
            let message = "the text has at least 500 tokens, but the context has 9";
            assert_eq!(found.expect_err("a text too long").to_string(), message);
        }
        assert_eq!(
            t.within(9).encode_pair("a", "b").expect("a pair"),
            t.encode_pair("a", "b").expect("a pair")
        );
    }

    #[test]
    fn texts_that_may_vanish_are_tokenized() {
        // A character without a token is left out; an unknown word is one token, as are unknown characters.
        let lacks = tokenizer("llama", &[], |spec| spec.tokens[usize::from(b'a')] = "none".into());
        assert_eq!(at_least(&lacks, &"a".repeat(1000), 10), None);
        let bert = tokenizer("bert", &[], |_| ());
        assert_eq!(at_least(&bert, &"a".repeat(1000), 10), None);
        let known = |spec: &mut TokenizerSpec| spec.token_types[0] = 2;
        let t5 = tokenizer("t5", &["abcdefgh", "a"], known);
        assert_eq!(at_least(&t5, &"é".repeat(1000), 100), None);
        assert_eq!(at_least(&t5, &"éa".repeat(800), 100), None);
        assert_eq!(at_least(&t5, &"éa".repeat(801), 100), Some(101));
        assert_eq!(at_least(&t5, &"abcdefgh".repeat(100), 100), None);
        // The unknown token is an ordinary one, so that many of it may become one.
        let odd = tokenizer("t5", &["a"], |spec| spec.unk = Some(256));
        assert_eq!(at_least(&odd, &"a".repeat(1000), 10), None);
        // White space after special tokens of Phi-3.
        let phi = tokenizer("llama", &["<|user|>"], |spec| {
            (spec.name, spec.token_types[256]) = (Some("Phi-3".into()), 4);
        });
        let spaces = |word: &str| format!("<|user|>{}{word}", " \n".repeat(1000));
        assert_eq!(at_least(&phi, &spaces(""), 10), None);
        assert_eq!(at_least(&phi, &spaces(&"a".repeat(80)), 10), Some(11));
    }

    #[test]
    fn forms_of_unicode_shorten_texts() {
        let t = tokenizer("gpt2", &[], |spec| spec.normalizer = Some("nfkc".into()));
        let (wide, n) = ("\u{1d400}".repeat(100), 2 * FORM);
        assert_eq!(at_least(&t, &wide, 100), None);
        assert_eq!(at_least(&t, &"a".repeat(100 * n + 1), 100), Some(101));
    }

    /// Asserts that a text of any characters shortens by at most [`FORM`] in a form and its composition.
    fn shortens_within_bounds(decomposed: fn(char) -> Vec<char>, composed: fn(char) -> Vec<char>) {
        // Bytes of the longest character that becomes this one alone.
        let mut longest = HashMap::<char, usize>::new();
        for c in '\0'..=char::MAX {
            if let [part] = decomposed(c)[..] {
                let n = longest.entry(part).or_default();
                *n = c.len_utf8().max(*n);
            }
        }
        let bytes = |parts: &[char]| parts.iter().map(|part| longest[part]).sum::<usize>();
        for c in '\0'..=char::MAX {
            let parts = decomposed(c);
            assert!(c.len_utf8() <= bytes(&parts), "{c:?} is longer than its parts");
            // In the result it stands for the characters that it decomposes into.
            if parts == [c] || composed(c) == [c] {
                assert!(bytes(&parts) <= FORM * c.len_utf8(), "{c:?} may be made of {} bytes", bytes(&parts));
            }
        }
    }

    #[test]
    fn no_form_of_unicode_shortens_texts_by_more() {
        shortens_within_bounds(|c| c.nfd().collect(), |c| c.nfc().collect());
        shortens_within_bounds(|c| c.nfkd().collect(), |c| c.nfkc().collect());
        let text = "\u{1d704}\u{308}\u{301}";
        assert_eq!(text.len(), FORM * text.nfkc().collect::<String>().len());
    }
}
