//! What can go wrong, where, and through which includes.

use std::fmt;

/// A place in a source file; lines and columns count from one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The name of the file or template, as its loader gave it.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// The column in characters, from one, where it is known.
    pub column: Option<u32>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        Ok(())
    }
}

/// An error with its place and the includes that led there.
///
/// Its text has the place first and one line for each include, innermost first:
///
/// ```text
/// a.wgsl:3:1: unknown directive `#foo`
///   included from main.wgsl:7
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    at: Option<Location>,
    included_from: Vec<Location>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, at: Option<Location>, included_from: Vec<Location>) -> Self {
        Self { inner: Box::new(Inner { kind, at, included_from }) }
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.inner.kind
    }

    /// Where it went wrong; `None` when no file is to blame, as with a bad macro among the options.
    pub fn location(&self) -> Option<&Location> {
        self.inner.at.as_ref()
    }

    /// The lines that included the file of [`location`](Self::location), innermost first.
    pub fn included_from(&self) -> &[Location] {
        &self.inner.included_from
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.inner.at {
            write!(f, "{at}: ")?;
        }
        self.inner.kind.fmt(f)?;
        for from in &self.inner.included_from {
            write!(f, "\n  included from {from}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// What went wrong; the texts say what was expected and what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A template does not parse, uses an undefined name, or fails in one of Jinja's own operations.
    #[error("{message}")]
    Template {
        /// What Jinja says about it.
        message: String,
    },
    /// A template writes `none`, which means nothing in WGSL.
    #[error("the value is none, which has no text in WGSL")]
    Nothing,
    /// A template called `raise(message)`.
    #[error("{message}")]
    Raised {
        /// The template's message.
        message: String,
    },
    /// A WGSL filter got a value it cannot write.
    #[error("filter `{filter}`: expected {expected}, found {found}")]
    Filter {
        /// The filter's name.
        filter: &'static str,
        /// What the filter takes.
        expected: String,
        /// The value that it got.
        found: String,
    },
}
