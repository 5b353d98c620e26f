//! Errors of building or using a tokenizer.

use super::expression::{MAX_PRE_EXPRESSION_BYTES, MAX_PRE_EXPRESSIONS};

/// A failure to build a tokenizer, or to encode a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A metadata key is missing, or has another type.
    #[error("cannot read the tokenizer metadata")]
    Metadata {
        /// The cause.
        #[source]
        source: Box<ggml_format::GgufError>,
    },
    /// The metadata specifies a kind of tokenizer that is not implemented.
    #[error("tokenizer model `{model}` is not supported (known: {known})")]
    UnsupportedModel {
        /// Value of `tokenizer.ggml.model`.
        model: String,
        /// The supported kinds.
        known: &'static str,
    },
    /// The metadata specifies an unknown pre-tokenizer.
    #[error("unknown pre-tokenizer `{pre}`; the file is rejected because its tokens would be wrong")]
    UnknownPre {
        /// Value of `tokenizer.ggml.pre`.
        pre: String,
    },
    /// An expression of a pre-tokenizer that comes with the model cannot be used.
    #[error("pre-tokenizer expression {expression:?}: {why}; name a known pre-tokenizer instead")]
    Expression {
        /// The expression, in Hugging Face's syntax.
        expression: String,
        /// The reason.
        why: String,
    },
    /// The model comes with more expressions of a pre-tokenizer, or with longer ones, than are compiled.
    #[error(
        "pre-tokenizer: expected at most {MAX_PRE_EXPRESSIONS} expressions of {MAX_PRE_EXPRESSION_BYTES} bytes together, found {n} of {n_byte}; name a known pre-tokenizer instead"
    )]
    TooManyExpressions {
        /// Number of expressions.
        n: usize,
        /// Bytes of all of them.
        n_byte: usize,
    },
    /// The metadata specifies an unknown form of Unicode.
    #[error("unknown normalizer `{normalizer}` (known: {known})")]
    UnknownNormalizer {
        /// Value of `tokenizer.chaski.normalizer`.
        normalizer: String,
        /// The supported forms.
        known: &'static str,
    },
    /// The file has only token ids, no vocabulary.
    #[error("this model has no text vocabulary (tokenizer model `{model}`): use token ids")]
    NoText {
        /// Value of `tokenizer.ggml.model`.
        model: String,
    },
    /// A text with more tokens than it may have, of which so many are certain before it is tokenized.
    #[error("the text has at least {at_least} tokens, but the context has {limit}")]
    TooLong {
        /// Tokens that the text certainly has.
        at_least: usize,
        /// The limit.
        limit: usize,
    },
    /// The metadata lacks a key that this kind of tokenizer needs.
    #[error("tokenizer metadata `{key}` is missing")]
    Missing {
        /// The metadata key.
        key: &'static str,
    },
    /// A list with one entry per token has the wrong length.
    #[error("tokenizer metadata `{key}`: expected {expected} entries, one per token, found {found}")]
    Length {
        /// The metadata key.
        key: &'static str,
        /// Number of tokens.
        expected: usize,
        /// Number of entries.
        found: usize,
    },
    /// The vocabulary has more tokens than ids can represent.
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
    /// A merge does not consist of two texts separated by a space.
    #[error("merge {index} is {line:?}: expected two parts separated by a space")]
    BadMerge {
        /// Index in `tokenizer.ggml.merges`.
        index: usize,
        /// The entry.
        line: String,
    },
    /// A score that is not finite.
    #[error(
        "tokenizer metadata `tokenizer.ggml.scores`: expected a finite score for token {id}, found {found}"
    )]
    Score {
        /// The token.
        id: usize,
        /// Its score.
        found: f32,
    },
    /// A damaged table of character replacements.
    #[error("tokenizer metadata `tokenizer.ggml.precompiled_charsmap` of {n_byte} bytes: {what}")]
    Charsmap {
        /// The defect.
        what: &'static str,
        /// Its size.
        n_byte: usize,
    },
}
