//! What stands for constraints in builds without them.

use super::{ConstraintError, Grammar};
use crate::tokenizer::Tokenizer;

/// A text in the making that must fit a [`Grammar`]. This build has none: it lacks the cargo feature `constraint`.
#[derive(Debug)]
pub enum Constraint {}

impl Constraint {
    /// Begins a text.
    ///
    /// # Errors
    ///
    /// [`ConstraintError::LeftOut`], always.
    pub fn new(_: &Tokenizer, _: &Grammar) -> Result<Constraint, ConstraintError> {
        Err(ConstraintError::LeftOut)
    }

    /// Excludes tokens.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn mask(&mut self, _: &mut [f32]) -> Result<(), ConstraintError> {
        match *self {}
    }

    /// Goes on by a token.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn accept(&mut self, _: u32) -> Result<(), ConstraintError> {
        match *self {}
    }

    /// Whether the text is complete and nothing can be added.
    pub fn is_finished(&self) -> bool {
        match *self {}
    }

    /// Whether the text is complete as it is.
    ///
    /// # Errors
    ///
    /// None: there is no such value.
    pub fn may_end(&mut self) -> Result<bool, ConstraintError> {
        match *self {}
    }
}
