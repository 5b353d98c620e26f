//! Events of an answer.

use super::error::ServeError;
use crate::run::{Finish, Piece, Stats};

/// An event of an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The prompt starts to run.
    Started {
        /// Tokens of the prompt to run.
        n_prompt: usize,
        /// Tokens of the prompt in the cache already.
        n_cached: usize,
        /// Reason for sampling on the CPU, with a readback per token; `None` if the device samples.
        on_cpu: Option<&'static str>,
    },
    /// Progress of the prompt: part of it is not submitted yet.
    Prompt {
        /// Submitted tokens, of [`Event::Started`]'s `n_prompt`.
        n_sent: usize,
    },
    /// A piece of the answer.
    Piece(Piece),
    /// The answer has ended. This is the last event.
    Finished {
        /// The reason.
        finish: Finish,
        /// Statistics.
        stats: Stats,
    },
    /// The answer failed. This is the last event.
    Failed {
        /// The error.
        error: ServeError,
    },
}
