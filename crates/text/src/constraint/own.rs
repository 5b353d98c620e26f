//! Grammars whose masks are computed elsewhere.

use std::fmt;
use std::sync::Arc;

use super::ConstraintError;

/// The masks of a text under generation, computed by the caller's own code.
pub trait Masks: Send + Sync {
    /// Sets bit `t % 32` of word `t / 32` for each token `t` that is allowed next, and clears all others. If the text
    /// is complete and cannot be continued, tokens that end a generation are allowed.
    ///
    /// # Errors
    ///
    /// The mask cannot be computed.
    fn allowed(&mut self, words: &mut [u32]) -> Result<(), ConstraintError>;

    /// Advances by `token`.
    ///
    /// # Errors
    ///
    /// The token is not allowed, or the masks cannot be computed.
    fn accept(&mut self, token: u32) -> Result<(), ConstraintError>;

    /// True if the text is complete and cannot be continued.
    fn is_finished(&self) -> bool;

    /// True if the text is complete; it may still continue.
    ///
    /// # Errors
    ///
    /// As [`Self::allowed`].
    fn may_end(&mut self) -> Result<bool, ConstraintError>;
}

type Start = dyn Fn() -> Result<Box<dyn Masks>, ConstraintError> + Send + Sync;

/// A grammar of the caller's own; each answer starts its own [`Masks`]. Equal to its clones alone.
#[derive(Clone)]
pub struct OwnGrammar(Arc<Start>);

impl OwnGrammar {
    /// A grammar whose texts begin with `start`.
    pub fn new(
        start: impl Fn() -> Result<Box<dyn Masks>, ConstraintError> + Send + Sync + 'static,
    ) -> OwnGrammar {
        OwnGrammar(Arc::new(start))
    }

    pub(super) fn start(&self) -> Result<Box<dyn Masks>, ConstraintError> {
        (self.0)()
    }
}

impl fmt::Debug for OwnGrammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnGrammar")
    }
}

impl PartialEq for OwnGrammar {
    fn eq(&self, other: &OwnGrammar) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
