//! Constrained output: restricts the next token by a JSON schema, a regular expression or a grammar.
//!
//! [`Constraint::mask`] excludes all other tokens from the logits before a token is sampled, so the text is a
//! valid prefix at every step; [`Constraint::accept`] advances by the sampled token. [`Constraint::allowed`] is
//! the mask as bits, for a device that samples.

mod closed;
mod error;
#[cfg(feature = "constraint")]
mod gbnf;
#[cfg(feature = "constraint")]
mod limits;
#[cfg(feature = "constraint")]
mod matcher;
mod own;
mod space;

use serde_json::Value;

use crate::tokenizer::Tokenizer;

pub(crate) use closed::COMBINING;
#[cfg(feature = "constraint")]
use closed::closed;
pub use error::ConstraintError;
#[cfg(feature = "constraint")]
use matcher::Compiled;
pub use own::{Masks, OwnGrammar};
#[cfg(feature = "constraint")]
use space::with_short_space;
pub(crate) use space::with_space;

/// The grammar of the output.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Grammar {
    /// JSON that conforms to this schema. Between its tokens there may be a space, or a line ending and a space or
    /// tab: two characters at most, unless `whitespace_pattern` or `whitespace_flexible` in the schema's
    /// `x-guidance` says otherwise. Objects have the properties that `properties` names, and others only if
    /// `additionalProperties` allows them, as in llama.cpp; a schema with `allOf` is taken as it stands.
    JsonSchema(Value),
    /// Text that this regular expression matches as a whole (syntax of the crate `regex`).
    Regex(String),
    /// Text of a grammar in llguidance's variant of Lark; `start` is the start rule.
    Lark(String),
    /// Text of a grammar in llama.cpp's notation; `root` is the start rule.
    Gbnf(String),
    /// Masks that the caller's own code computes.
    Own(OwnGrammar),
}

impl Grammar {
    /// Detects the notation of a grammar: in GBNF some line begins with a rule name and `::=`.
    pub fn from_text(text: impl Into<String>) -> Grammar {
        let text = text.into();
        let is_rule = |line: &str| {
            let line = line.trim_start();
            let rest = line.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
            rest.len() < line.len() && rest.trim_start().starts_with("::=")
        };
        if text.lines().any(is_rule) { Grammar::Gbnf(text) } else { Grammar::Lark(text) }
    }

    /// Its name in messages.
    #[cfg(feature = "constraint")]
    fn kind(&self) -> &'static str {
        match self {
            Grammar::JsonSchema(_) => "JSON schema",
            Grammar::Regex(_) => "regular expression",
            Grammar::Lark(_) | Grammar::Gbnf(_) | Grammar::Own(_) => "grammar",
        }
    }
}

/// A text under generation that must conform to a [`Grammar`].
///
/// ```
/// use chaski_text::{Constraint, Grammar, Tokenizer, TokenizerSpec};
///
/// let tokens = ["<unk>", "<s>", "</s>", "a", "b", "ab"].map(String::from).to_vec();
/// let kinds = vec![2, 3, 3, 1, 1, 1];
/// let spec = TokenizerSpec { model: "llama".into(), tokens, token_types: kinds, ..TokenizerSpec::default() };
/// let tokenizer = Tokenizer::from_spec(spec)?;
/// let mut constraint = Constraint::new(&tokenizer, &Grammar::Regex("ab?".into()))?;
/// let mut logits = [0.0; 6];
/// constraint.mask(&mut logits)?;
/// assert_eq!(logits.map(|logit| logit == 0.0), [false, false, false, true, false, true]);
/// constraint.accept(5)?;
/// assert!(constraint.is_finished());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Constraint {
    masks: Box<dyn Masks>,
    /// A mask of logits.
    words: Vec<u32>,
}

impl std::fmt::Debug for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Constraint")
    }
}

impl Constraint {
    /// Starts a text. The first constraint of a tokenizer prepares its vocabulary, which takes a fraction of
    /// a second for large vocabularies. The tokenizer keeps the last grammars compiled, 64 of them and texts of 1 MiB
    /// at most.
    ///
    /// # Errors
    ///
    /// [`ConstraintError::Gbnf`] or [`ConstraintError::Grammar`] if the grammar is invalid or unsupported;
    /// [`ConstraintError::FeatureDisabled`] for any but [`Grammar::Own`] in a build without the cargo feature
    /// `constraint`.
    pub fn new(tokenizer: &Tokenizer, grammar: &Grammar) -> Result<Constraint, ConstraintError> {
        let masks = match grammar {
            Grammar::Own(own) => own.start()?,
            grammar => compiled(tokenizer, grammar)?,
        };
        Ok(Constraint { masks, words: Vec::new() })
    }

    /// Sets the logits of all forbidden tokens to minus infinity; if the text is complete, only tokens that
    /// end a generation remain.
    ///
    /// # Errors
    ///
    /// [`ConstraintError::Step`] if the grammar takes too much time or memory.
    pub fn mask(&mut self, logits: &mut [f32]) -> Result<(), ConstraintError> {
        self.words.resize(logits.len().div_ceil(32), 0);
        self.masks.allowed(&mut self.words)?;
        for (logits, word) in logits.chunks_mut(32).zip(&self.words) {
            for (bit, logit) in logits.iter_mut().enumerate() {
                if word >> bit & 1 == 0 {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        Ok(())
    }

    /// The tokens that [`Self::mask`] leaves as bits: bit `t % 32` of word `t / 32` becomes 1 if token `t` is
    /// allowed, all others 0.
    ///
    /// # Errors
    ///
    /// As [`Self::mask`].
    pub fn allowed(&mut self, words: &mut [u32]) -> Result<(), ConstraintError> {
        self.masks.allowed(words)
    }

    /// Advances by `token`.
    ///
    /// # Errors
    ///
    /// [`ConstraintError::Forbidden`] if the token is not allowed, [`ConstraintError::Step`] as for
    /// [`Constraint::mask`].
    pub fn accept(&mut self, token: u32) -> Result<(), ConstraintError> {
        self.masks.accept(token)
    }

    /// True if the text is complete and cannot be continued.
    pub fn is_finished(&self) -> bool {
        self.masks.is_finished()
    }

    /// True if the text is complete; it may still continue.
    ///
    /// # Errors
    ///
    /// As [`Constraint::mask`].
    pub fn may_end(&mut self) -> Result<bool, ConstraintError> {
        self.masks.may_end()
    }
}

#[cfg(feature = "constraint")]
fn compiled(tokenizer: &Tokenizer, grammar: &Grammar) -> Result<Box<dyn Masks>, ConstraintError> {
    Ok(Box::new(Compiled::new(tokenizer, grammar)?))
}

#[cfg(not(feature = "constraint"))]
fn compiled(_: &Tokenizer, _: &Grammar) -> Result<Box<dyn Masks>, ConstraintError> {
    Err(ConstraintError::FeatureDisabled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::TokenizerSpec;

    /// Allows one token, and then ends.
    struct Once {
        token: u32,
        is_over: bool,
    }

    impl Masks for Once {
        fn allowed(&mut self, words: &mut [u32]) -> Result<(), ConstraintError> {
            words.fill(0);
            words[self.token as usize / 32] = 1 << (self.token % 32);
            Ok(())
        }

        fn accept(&mut self, token: u32) -> Result<(), ConstraintError> {
            self.is_over = token == self.token;
            if self.is_over { Ok(()) } else { Err(ConstraintError::Forbidden { token, n_token: 0 }) }
        }

        fn is_finished(&self) -> bool {
            self.is_over
        }

        fn may_end(&mut self) -> Result<bool, ConstraintError> {
            Ok(self.is_over)
        }
    }

    #[test]
    fn masks_of_the_caller_constrain_as_those_of_a_grammar_do() {
        let tokens = (0..40).map(|i| format!("t{i}")).collect();
        let spec = TokenizerSpec { model: "none".into(), tokens, ..TokenizerSpec::default() };
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        let grammar = Grammar::Own(OwnGrammar::new(|| Ok(Box::new(Once { token: 33, is_over: false }))));
        assert_eq!(grammar.clone(), grammar);
        for _ in 0..2 {
            let mut constraint = Constraint::new(&tokenizer, &grammar).unwrap();
            let mut logits = [0.0; 40];
            constraint.mask(&mut logits).unwrap();
            let left: Vec<usize> = (0..40).filter(|i| logits[*i] == 0.0).collect();
            assert_eq!(left, [33]);
            assert!(constraint.accept(1).is_err() && !constraint.may_end().unwrap());
            constraint.accept(33).unwrap();
            assert!(constraint.is_finished());
        }
    }
}
