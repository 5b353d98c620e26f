//! The course of an answer in time.

use std::time::Instant;

use chaski::Stats;

/// The course of an answer.
#[derive(Clone, Default)]
pub(super) struct Course {
    /// When its prompt began to run.
    pub(super) started: Option<Instant>,
    /// Times of its first and last token.
    pub(super) tokens: Option<(Instant, Instant)>,
    pub(super) stats: Stats,
    /// When it ended, and why.
    pub(super) ended: Option<(Instant, &'static str)>,
}
