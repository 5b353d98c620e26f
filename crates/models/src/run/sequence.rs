//! A sequence of a runner.

use super::state_copies::StateCopies;

/// State of a sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// Tokens whose keys and values are in the cache.
    pub(crate) history: Vec<u32>,
    /// Copies of the recurrent state.
    pub(super) copies: StateCopies,
    /// End of the positions ever written, even if the sequence was rewound since.
    pub(super) top: usize,
    /// Scale of each LoRA.
    pub(super) scales: Vec<f32>,
}
