//! What can go wrong in building or using a tokenizer.

/// Why a tokenizer could not be built, or a text not be encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The metadata lacks something, or has it in another type.
    #[error("cannot read the tokenizer's metadata")]
    Metadata {
        /// What is wrong.
        #[source]
        source: Box<ggml_format::GgufError>,
    },
    /// The metadata names a kind of tokenizer that is not implemented.
    #[error("tokenizer model `{model}` is not supported (known: {known})")]
    UnsupportedModel {
        /// Value of `tokenizer.ggml.model`.
        model: String,
        /// The kinds that are.
        known: &'static str,
    },
    /// The metadata names a pre-tokenizer that is not in the table.
    #[error("pre-tokenizer `{pre}` is not known; tokens would come out wrong, so the file is refused")]
    UnknownPre {
        /// Value of `tokenizer.ggml.pre`.
        pre: String,
    },
    /// The file has no vocabulary, only ids.
    #[error("this model has no text vocabulary (tokenizer model `{model}`): give it token ids")]
    NoText {
        /// Value of `tokenizer.ggml.model`.
        model: String,
    },
    /// The metadata lacks something that the kind of tokenizer needs.
    #[error("tokenizer metadata `{key}` is missing")]
    Missing {
        /// The metadata key.
        key: &'static str,
    },
    /// A list has one entry per token, but not as many as there are tokens.
    #[error("tokenizer metadata `{key}`: expected {expected} entries, one per token, found {found}")]
    Length {
        /// The metadata key.
        key: &'static str,
        /// Number of tokens.
        expected: usize,
        /// Number of entries.
        found: usize,
    },
    /// More tokens than an id can number.
    #[error("vocabulary of {n_token} tokens is too large (at most {max})")]
    TooManyTokens {
        /// Number of tokens in the file.
        n_token: usize,
        /// The limit.
        max: usize,
    },
    /// Two tokens have the same text.
    #[error("tokens {first} and {second} have the same text {text:?}")]
    DuplicateToken {
        /// The text.
        text: String,
        /// Smaller id.
        first: usize,
        /// Larger id.
        second: usize,
    },
    /// A merge is not two texts with a space between them.
    #[error("merge {index} is {line:?}: expected two parts with a space between them")]
    BadMerge {
        /// Index in `tokenizer.ggml.merges`.
        index: usize,
        /// The entry.
        line: String,
    },
    /// A score that cannot be compared.
    #[error(
        "tokenizer metadata `tokenizer.ggml.scores`: expected a finite score for token {id}, found {found}"
    )]
    Score {
        /// The token.
        id: usize,
        /// Its score.
        found: f32,
    },
    /// A table of characters that is damaged.
    #[error("tokenizer metadata `tokenizer.ggml.precompiled_charsmap` of {n_byte} bytes has {what}")]
    Charsmap {
        /// What is wrong.
        what: &'static str,
        /// Its size.
        n_byte: usize,
    },
}
