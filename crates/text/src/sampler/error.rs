//! What can go wrong in sampling.

/// Why no token could be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A logit is not a number, or plus infinity: the model's computation went wrong, or parameters are absurd.
    #[error("logit of token {id} is {logit}")]
    NotFinite {
        /// The token.
        id: u32,
        /// Its logit.
        logit: f32,
    },
    /// There is not one logit per token.
    #[error("expected {expected} logits, found {found}")]
    Length {
        /// Size of the vocabulary.
        expected: usize,
        /// Number of logits.
        found: usize,
    },
    /// Every token has been excluded.
    #[error("no token is left to draw from: all logits are minus infinity")]
    NothingLeft,
}
