//! The parts of an answer.

use super::error::ServeError;
use crate::run::{Finish, Piece, Stats};

/// A part of an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The prompt begins to run.
    Started {
        /// Tokens of the prompt that have to be run.
        n_prompt: usize,
        /// Tokens of the prompt that are in the cache already.
        n_cached: usize,
        /// The reason why every token is chosen on the CPU, from logits that are read back; `None` if the device does it.
        on_cpu: Option<&'static str>,
    },
    /// The prompt goes on: some of it is left to be sent to the device.
    Prompt {
        /// Tokens that were sent, of [`Event::Started`]'s `n_prompt`.
        n_sent: usize,
    },
    /// The answer goes on.
    Piece(Piece),
    /// The answer has ended. Nothing follows.
    Finished {
        /// The reason.
        finish: Finish,
        /// Counts and times.
        stats: Stats,
    },
    /// The answer could not go on. Nothing follows.
    Failed {
        /// The reason.
        error: ServeError,
    },
}
