//! Tokens, types and scores by id, as GGUF lists them.

use std::collections::HashMap;

use super::TokenizerFileError;

/// Size limit of a vocabulary. The largest in use have 262,144 tokens.
pub(super) const MAX_TOKENS: usize = 1 << 22;

/// The types of tokens, with GGUF's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenType {
    Normal = 1,
    Unknown = 2,
    Control = 3,
    UserDefined = 4,
    Unused = 5,
    Byte = 6,
}

/// The vocabulary of a tokenizer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Vocabulary {
    pub(super) tokens: Vec<String>,
    pub(super) kinds: Vec<TokenType>,
    /// One score per token, or none for vocabularies with merges.
    pub(super) scores: Vec<f32>,
    /// Number of tokens whose ids the model does not have.
    pub(super) n_left_out: usize,
}

/// Scores of SentencePiece vocabularies for ids without a token, and for added tokens.
pub(super) const SCORE_UNUSED: f32 = -10_000.0;
pub(super) const SCORE_ADDED: f32 = -1000.0;

/// Texts that look like control tokens, whatever the folder says: whole, and by beginning and end.
const CONTROL_TEXTS: &[&str] = &["<pad>", "<mask>", "<2mass>", "[@BOS@]"];
const CONTROL_MARKS: &[(&str, &str)] = &[("<|", "|>"), ("<｜", "｜>"), ("<unused", ">")];

impl Vocabulary {
    /// `n` unused ids; their tokens have scores if `has_scores`.
    pub(super) fn unused(n: u64, has_scores: bool) -> Result<Vocabulary, TokenizerFileError> {
        let size = TokenizerFileError::VocabularySize { found: n, max: MAX_TOKENS };
        let n = usize::try_from(n).ok().filter(|n| (1..=MAX_TOKENS).contains(n)).ok_or(size)?;
        Ok(Vocabulary {
            tokens: (0..n).map(|id| format!("[PAD{id}]")).collect(),
            kinds: vec![TokenType::Unused; n],
            scores: vec![SCORE_UNUSED; if has_scores { n } else { 0 }],
            n_left_out: 0,
        })
    }

    /// Sets a token. Ids past the end are counted: the model has no row for them.
    pub(super) fn set(&mut self, id: usize, text: String, kind: TokenType, score: f32) {
        let Some(token) = self.tokens.get_mut(id) else {
            self.n_left_out += 1;
            return;
        };
        *token = text;
        self.kinds[id] = kind;
        if let Some(old) = self.scores.get_mut(id) {
            *old = score;
        }
    }

    /// Sets a token that was added to the vocabulary: a control token if it is `special` or looks like one.
    pub(super) fn add(&mut self, id: usize, text: &str, special: bool) {
        if special || looks_like_control(text) {
            self.set(id, text.to_owned(), TokenType::Control, SCORE_ADDED);
        } else {
            // Such tokens match texts as they are, in which a space is no `▁`.
            self.set(id, text.replace('▁', " "), TokenType::UserDefined, SCORE_ADDED);
        }
    }

    /// Ids by text, the smallest of several.
    pub(super) fn by_text(&self) -> HashMap<&str, usize> {
        self.tokens.iter().enumerate().rev().map(|(id, text)| (text.as_str(), id)).collect()
    }

    /// The numbers of the types.
    pub(super) fn kind_numbers(&self) -> Vec<i32> {
        self.kinds.iter().map(|&kind| kind as i32).collect()
    }
}

fn looks_like_control(text: &str) -> bool {
    let marked = |(begin, end): &(&str, &str)| text.starts_with(begin) && text.ends_with(end);
    CONTROL_TEXTS.contains(&text) || CONTROL_MARKS.iter().any(marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_tokens_have_the_type_that_they_look_like() {
        let mut vocabulary = Vocabulary::unused(4, true).unwrap();
        let added = [("<|x|>", false), ("a▁b", false), ("<s>", true), ("<unused3>", false), ("y", false)];
        added.iter().enumerate().for_each(|(id, (text, special))| vocabulary.add(id, text, *special));
        assert_eq!(vocabulary.tokens, ["<|x|>", "a b", "<s>", "<unused3>"]);
        assert_eq!(vocabulary.kind_numbers(), [3, 4, 3, 3]);
        assert_eq!((vocabulary.n_left_out, vocabulary.by_text()["<s>"]), (1, 2));
    }

    #[test]
    fn sizes_are_bounded() {
        for n in [0, MAX_TOKENS as u64 + 1, u64::MAX] {
            assert!(Vocabulary::unused(n, false).is_err());
        }
    }
}
