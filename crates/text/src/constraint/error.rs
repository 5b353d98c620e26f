//! Errors of constrained output.

/// A failure of constrained output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// The cargo feature `constraint` is disabled in this build.
    #[error("this build does not support constrained output: the cargo feature `constraint` is off")]
    FeatureDisabled,
    /// A GBNF grammar with a syntax error.
    #[error("GBNF grammar, line {line}, column {column}: {what}")]
    Gbnf {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The expected and the found text.
        what: String,
    },
    /// An invalid or unsupported grammar, JSON schema or regular expression.
    #[error("cannot compile the {kind}")]
    Grammar {
        /// The kind of constraint.
        kind: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A grammar, JSON schema or regular expression that is too large or too deep to be compiled.
    #[error("the {kind} exceeds the limit of {limit} {what}")]
    Limit {
        /// The kind of constraint.
        kind: &'static str,
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The vocabulary could not be prepared.
    #[error("the vocabulary cannot be used for constrained output")]
    Vocabulary {
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The allowed tokens could not be computed: the grammar is too ambiguous, or too large.
    #[error("the constraint failed after {n_token} tokens")]
    Step {
        /// Number of tokens accepted before.
        n_token: usize,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A token that the constraint forbids.
    #[error("the constraint forbids token {token} after {n_token} tokens")]
    Forbidden {
        /// The token.
        token: u32,
        /// Number of tokens accepted before.
        n_token: usize,
    },
}
