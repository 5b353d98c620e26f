//! The reasons why calls cannot be forced.

/// The reason why no grammar of calls can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallGrammarError {
    /// The notation has no calls.
    #[error("the notation `{syntax}` has no tool calls; `object` can be used instead")]
    NoCalls {
        /// Its name.
        syntax: &'static str,
    },
    /// The list of tools is empty.
    #[error("a tool call is required, but there are no tools")]
    NoTools,
    /// A tool that is no function with a name.
    #[error("tool {index} has no name")]
    Unnamed {
        /// Its index, from 0.
        index: usize,
    },
    /// The chosen tool is not in the list.
    #[error("no tool is called `{name}`; there are {known}")]
    Unknown {
        /// The chosen name.
        name: String,
        /// All names.
        known: String,
    },
    /// A name of a tool that the notation cannot express.
    #[error("the tool name `{name}` cannot be written in the notation `{syntax}`")]
    Name {
        /// The name of the tool.
        name: String,
        /// The name of the notation.
        syntax: &'static str,
    },
    /// A name of an argument that the notation cannot express.
    #[error("the argument `{key}` of the tool `{tool}` cannot be written in the notation `{syntax}`")]
    Argument {
        /// The name of the tool.
        tool: String,
        /// The name of the argument.
        key: String,
        /// The name of the notation.
        syntax: &'static str,
    },
    /// A schema that cannot be expressed.
    #[error("the schema of the tool `{tool}` {what}")]
    Schema {
        /// The name of the tool.
        tool: String,
        /// The difficulty.
        what: String,
    },
}

/// A failure within a tool.
pub(super) enum Fault {
    Name,
    Argument(String),
    Schema(String),
}
