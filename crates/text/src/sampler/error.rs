//! Errors of sampling.

/// A failure to sample a token, or unusable parameters.
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
    /// A parameter outside its range.
    #[error("`{name}` is {found}, but must be {expected}")]
    Parameter {
        /// The field of [`SamplerParams`](super::SamplerParams).
        name: &'static str,
        /// Its value.
        found: f32,
        /// The range.
        expected: &'static str,
    },
    /// A logit bias of a token that does not exist.
    #[error("the logit bias of token {token} is for none of the {n_vocab} tokens of the vocabulary")]
    Bias {
        /// The token.
        token: u32,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// All tokens are excluded.
    #[error("no token left to sample: all logits are minus infinity")]
    NothingLeft,
}
