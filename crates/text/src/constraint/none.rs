//! Placeholder for constraints in builds without them.

use super::{ConstraintError, Grammar};
use crate::tokenizer::Tokenizer;

/// A text under generation that must conform to a [`Grammar`]. No value exists in this build, which lacks the
/// cargo feature `constraint`.
#[derive(Debug)]
pub enum Constraint {}

impl Constraint {
    /// Starts a text.
    ///
    /// # Errors
    ///
    /// [`ConstraintError::FeatureDisabled`], always.
    pub fn new(_: &Tokenizer, _: &Grammar) -> Result<Constraint, ConstraintError> {
        Err(ConstraintError::FeatureDisabled)
    }

    /// Masks the logits of forbidden tokens.
    ///
    /// # Errors
    ///
    /// None: no value exists.
    pub fn mask(&mut self, _: &mut [f32]) -> Result<(), ConstraintError> {
        match *self {}
    }

    /// The allowed tokens as bits.
    ///
    /// # Errors
    ///
    /// None: no value exists.
    pub fn allowed(&mut self, _: &mut [u32]) -> Result<(), ConstraintError> {
        match *self {}
    }

    /// Advances by a token.
    ///
    /// # Errors
    ///
    /// None: no value exists.
    pub fn accept(&mut self, _: u32) -> Result<(), ConstraintError> {
        match *self {}
    }

    /// True if the text is complete and cannot be continued.
    pub fn is_finished(&self) -> bool {
        match *self {}
    }

    /// True if the text is complete.
    ///
    /// # Errors
    ///
    /// None: no value exists.
    pub fn may_end(&mut self) -> Result<bool, ConstraintError> {
        match *self {}
    }
}
