//! What can go wrong with constrained output.

/// Why output cannot be constrained as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// A build without the cargo feature `constraint`.
    #[error("this build cannot constrain output: it was made without grammars")]
    LeftOut,
    /// A GBNF grammar is written wrongly.
    #[error("GBNF grammar, line {line}, column {column}: {what}")]
    Gbnf {
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What was expected or found.
        what: String,
    },
    /// A grammar, JSON schema or regular expression that cannot be used.
    #[error("the {kind} cannot be used")]
    Grammar {
        /// What was given.
        kind: &'static str,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The vocabulary could not be prepared.
    #[error("the vocabulary cannot be used for constrained output")]
    Vocabulary {
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Tokens that are allowed next could not be found: the grammar is too ambiguous, or too large.
    #[error("the constraint failed after {n_token} tokens")]
    Step {
        /// Tokens accepted before.
        n_token: usize,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A token that the constraint forbids.
    #[error("token {token} is not what the constraint allows after {n_token} tokens")]
    Forbidden {
        /// The token.
        token: u32,
        /// Tokens accepted before.
        n_token: usize,
    },
}
