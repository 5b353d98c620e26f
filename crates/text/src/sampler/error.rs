//! Errors of sampling.

/// A failure to sample a token.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A logit is NaN or plus infinity: the model's computation failed, or parameters are extreme.
    #[error("logit of token {id} is {logit}")]
    NotFinite {
        /// The token.
        id: u32,
        /// Its logit.
        logit: f32,
    },
    /// The number of logits differs from the size of the vocabulary.
    #[error("expected {expected} logits, found {found}")]
    Length {
        /// Size of the vocabulary.
        expected: usize,
        /// Number of logits.
        found: usize,
    },
    /// All tokens are excluded.
    #[error("no token left to sample: all logits are minus infinity")]
    NothingLeft,
}
