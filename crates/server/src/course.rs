//! The course of an answer in time.

use std::time::Instant;

use chaski::Stats;

/// The course of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    /// When its prompt began to run.
    pub(crate) started: Option<Instant>,
    /// Times of its first and last token.
    pub(crate) tokens: Option<(Instant, Instant)>,
    pub(crate) stats: Stats,
    /// When it ended, and why.
    pub(crate) ended: Option<(Instant, &'static str)>,
}
