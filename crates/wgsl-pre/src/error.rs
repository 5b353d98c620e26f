//! What can go wrong, where, and through which includes.

use std::fmt;

use crate::load::LoadError;

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
    /// A line begins with `#` and no directive follows.
    #[error("unknown directive `{directive}`")]
    UnknownDirective {
        /// The directive as written, `#` included.
        directive: String,
    },
    /// Something follows a directive that is complete.
    #[error("unexpected `{found}` after `{directive}`")]
    UnexpectedText {
        /// The directive.
        directive: &'static str,
        /// What follows it.
        found: String,
    },
    /// An `#error` was reached.
    #[error("{message}")]
    User {
        /// The message of the directive.
        message: String,
    },
    /// An `#include` names no file in quotes.
    #[error("expected a file name in double quotes after `#include`, found {found}")]
    ExpectedFileName {
        /// What is there instead.
        found: String,
    },
    /// A file does not load.
    #[error("cannot load `{path}`: {reason}")]
    Load {
        /// The file as it was asked for.
        path: String,
        /// Why it does not load.
        reason: LoadError,
    },
    /// A file includes itself, directly or through others.
    #[error("`{path}` includes itself")]
    RecursiveInclude {
        /// The file.
        path: String,
    },
    /// Files include files, deeper or more often than any text needs.
    #[error("includes are deeper than {max_depth} or more than {max_count}")]
    TooManyIncludes {
        /// The deepest nesting.
        max_depth: usize,
        /// The most includes in one text.
        max_count: usize,
    },
    /// A conditional is open at the end of its file; the place is that of the opening line.
    #[error("`{directive}` has no `#endif`")]
    UnclosedConditional {
        /// The directive that opened it.
        directive: &'static str,
    },
    /// `#elif`, `#else` or `#endif` outside a conditional.
    #[error("`{directive}` without `#if`")]
    UnmatchedDirective {
        /// The directive.
        directive: &'static str,
    },
    /// `#elif` or `#else` after an `#else`.
    #[error("`{directive}` after the `#else` of line {else_line}")]
    AfterElse {
        /// The directive.
        directive: &'static str,
        /// Where the `#else` is.
        else_line: u32,
    },
    /// A directive needs the name of a macro.
    #[error("expected the name of a macro after `{directive}`, found {found}")]
    ExpectedName {
        /// The directive.
        directive: &'static str,
        /// What is there instead.
        found: String,
    },
    /// A macro given from outside has a name that no text could use.
    #[error("`{name}` cannot be the name of a macro")]
    MacroName {
        /// The name.
        name: String,
    },
    /// The parameters of a macro are not names between commas, each once.
    #[error("expected the parameters of macro `{name}` as `(a, b)`, each name once, found {found}")]
    BadParameters {
        /// The macro.
        name: String,
        /// What is there instead.
        found: String,
    },
    /// `##` without a left or a right side.
    #[error("`##` at an end of macro `{name}` has nothing to join")]
    PasteAtEnd {
        /// The macro.
        name: String,
    },
    /// `#` in a macro with parameters, but not in front of one.
    #[error("`#` in macro `{name}` is not followed by a parameter")]
    HashWithoutParameter {
        /// The macro.
        name: String,
    },
    /// A macro stands for a text with itself in it.
    #[error("macro `{name}` comes up again in its own value")]
    RecursiveMacro {
        /// The macro.
        name: String,
    },
    /// A call with too many or too few arguments.
    #[error("macro `{name}` takes {expected} argument{}, found {found}", if *expected == 1 { "" } else { "s" })]
    ArgumentCount {
        /// The macro.
        name: String,
        /// The number of its parameters.
        expected: usize,
        /// The number of arguments.
        found: usize,
    },
    /// A call without its closing parenthesis before the next directive or the end of the file.
    #[error("the call of macro `{name}` is not closed")]
    UnclosedCall {
        /// The macro.
        name: String,
    },
    /// Calls in arguments of calls, deeper than any text needs.
    #[error("calls nest deeper than {limit} around macro `{name}`")]
    CallsTooDeep {
        /// The macro.
        name: String,
        /// The deepest nesting.
        limit: u32,
    },
    /// Macros make one line larger than any text needs.
    #[error("macro `{name}` makes this line too large")]
    ExpansionTooLarge {
        /// The macro that went over the limit.
        name: String,
    },
    /// An expression has a gap where a value should be.
    #[error("expected a value, found {found}")]
    ExpectedValue {
        /// What is there instead.
        found: String,
    },
    /// An expression goes on with something that is no operator.
    #[error("expected an operator, found `{found}`")]
    ExpectedOperator {
        /// What is there instead.
        found: String,
    },
    /// An expression lacks a closing parenthesis.
    #[error("expected `)`, found {found}")]
    ExpectedClose {
        /// What is there instead.
        found: String,
    },
    /// `defined` without a name.
    #[error("expected a name after `defined`, found {found}")]
    ExpectedDefinedName {
        /// What is there instead.
        found: String,
    },
    /// A number in an expression that is not an integer of 64 bits.
    #[error("`{text}` is no integer that `#if` can read")]
    BadNumber {
        /// The number as written.
        text: String,
    },
    /// A macro in an expression has a value that is no expression.
    #[error("macro `{name}` is `{value}`, which is no integer expression")]
    MacroValue {
        /// The macro.
        name: String,
        /// Its value.
        value: String,
    },
    /// Parentheses, signs or macros in an expression, deeper than any text needs.
    #[error("the expression nests deeper than {limit}")]
    ExpressionTooDeep {
        /// The deepest nesting.
        limit: u32,
    },
}
