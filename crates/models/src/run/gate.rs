//! A constraint that may begin later in the text.

use chaski_text::{Constraint, RenderSpecial, Tokenizer};

use super::generate::GenerateOptions;
use crate::error::ModelError;

/// The constraint of an answer. Until its text begins, all tokens are allowed.
#[derive(Debug)]
pub(crate) struct Gate {
    constraint: Constraint,
    /// The text that has to come before; `None` once it came.
    waits: Option<Waits>,
}

#[derive(Debug)]
struct Waits {
    mark: Vec<u8>,
    /// The end of the text so far, shorter than `mark`.
    tail: Vec<u8>,
}

impl Waits {
    /// True if the mark is complete with these bytes.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.tail.extend_from_slice(bytes);
        if self.tail.windows(self.mark.len()).any(|part| part == self.mark) {
            return true;
        }
        let n_kept = self.tail.len().min(self.mark.len() - 1);
        self.tail.drain(..self.tail.len() - n_kept);
        false
    }
}

impl Gate {
    /// The gate of an answer with a grammar.
    ///
    /// # Errors
    /// [`ModelError::Constraint`] for an unusable grammar.
    pub(crate) fn new(tokenizer: &Tokenizer, options: &GenerateOptions) -> Result<Option<Gate>, ModelError> {
        let Some(grammar) = &options.grammar else { return Ok(None) };
        let constraint = Constraint::new(tokenizer, grammar)?;
        let mark = options.grammar_after.as_ref().filter(|mark| !mark.is_empty());
        let waits = mark.map(|mark| Waits { mark: mark.clone().into_bytes(), tail: Vec::new() });
        Ok(Some(Gate { constraint, waits }))
    }

    /// The mask of the next token, as bits.
    ///
    /// # Errors
    /// [`ModelError::Constraint`] if the constraint fails.
    pub(crate) fn allowed(&mut self, words: &mut [u32]) -> Result<(), ModelError> {
        match self.waits {
            Some(_) => words.fill(u32::MAX),
            None => self.constraint.allowed(words)?,
        }
        Ok(())
    }

    /// Masks the logits of forbidden tokens.
    ///
    /// # Errors
    /// [`ModelError::Constraint`] if the constraint fails.
    pub(crate) fn mask(&mut self, logits: &mut [f32]) -> Result<(), ModelError> {
        match self.waits {
            Some(_) => Ok(()),
            None => Ok(self.constraint.mask(logits)?),
        }
    }

    /// Advances by a token.
    ///
    /// # Errors
    /// [`ModelError::Constraint`] if the constraint fails.
    pub(crate) fn accept(&mut self, tokenizer: &Tokenizer, token: u32) -> Result<(), ModelError> {
        match &mut self.waits {
            // A model that ends here leaves its text incomplete.
            Some(waits) => {
                if waits.push(&tokenizer.token_bytes(token, RenderSpecial::Yes)) {
                    self.waits = None;
                }
                Ok(())
            }
            None => Ok(self.constraint.accept(token)?),
        }
    }

    /// True if the text is complete and cannot be continued.
    pub(crate) fn is_finished(&self) -> bool {
        self.waits.is_none() && self.constraint.is_finished()
    }

    /// True if the text is complete.
    pub(crate) fn is_complete(&mut self) -> bool {
        // A constraint that fails completes nothing.
        self.waits.is_none() && (self.constraint.is_finished() || self.constraint.may_end().unwrap_or(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_over_the_borders_of_tokens() {
        let mut waits = Waits { mark: b"</think>".to_vec(), tail: Vec::new() };
        assert!(!waits.push(b"a < b</thi"));
        assert!(!waits.push(b"n"));
        assert!(waits.push(b"k>\n\n"));
        let mut waits = Waits { mark: b"|".to_vec(), tail: Vec::new() };
        assert!(!waits.push(b"ab") && waits.push(b"|"));
    }
}
