//! A sequence of a runner.

use super::state_copies::StateCopies;

/// What is known of a sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// Tokens whose keys and values are in the cache.
    pub(crate) history: Vec<u32>,
    /// Copies of the recurrent state.
    pub(super) copies: StateCopies,
    /// Position behind the last that was written, though it may have been set back since.
    pub(super) top: usize,
    /// How much each LoRA of the model counts.
    pub(super) scales: Vec<f32>,
}
