//! Errors, with their location and the chain of includes.

use std::fmt;

use crate::load::LoadError;

/// A position in a source file; lines and columns count from one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The name of the file or template, as given by its loader.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// The column in characters, from one, if known.
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

/// An error with its location and its chain of includes.
///
/// Its text starts with the location and has one line per include, innermost first:
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

    /// The kind of the error.
    pub fn kind(&self) -> &ErrorKind {
        &self.inner.kind
    }

    /// The location of the error; `None` if no file is at fault, as with an invalid macro in the options.
    pub fn location(&self) -> Option<&Location> {
        self.inner.at.as_ref()
    }

    /// The lines that include the file of [`location`](Self::location), innermost first.
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

/// The text of the error: names of fields would only take room in modules for browsers.
impl fmt::Debug for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The kind of an error; messages name the expected and the found text.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A template does not parse, uses an undefined name, or fails in one of Jinja's own operations.
    #[error("{message}")]
    Template {
        /// Jinja's message.
        message: String,
    },
    /// A template writes `none`, which has no meaning in WGSL.
    #[error("`none` cannot be written in WGSL")]
    Nothing,
    /// A template called `raise(message)`.
    #[error("{message}")]
    Raised {
        /// The template's message.
        message: String,
    },
    /// A WGSL filter received a value that it cannot write.
    #[error("filter `{filter}`: expected {expected}, found {found}")]
    Filter {
        /// The filter's name.
        filter: &'static str,
        /// The values that the filter accepts.
        expected: String,
        /// The value that it received.
        found: String,
    },
    /// A line begins with `#`, but no directive follows.
    #[error("unknown directive `{directive}`")]
    UnknownDirective {
        /// The directive as written, including `#`.
        directive: String,
    },
    /// Extra text after a complete directive.
    #[error("unexpected `{found}` after `{directive}`")]
    UnexpectedText {
        /// The directive.
        directive: &'static str,
        /// The extra text.
        found: String,
    },
    /// An `#error` was reached.
    #[error("{message}")]
    User {
        /// The message of the directive.
        message: String,
    },
    /// An `#include` without a file name in quotes.
    #[error("expected a file name in double quotes after `#include`, found {found}")]
    ExpectedFileName {
        /// The text found instead.
        found: String,
    },
    /// A file that cannot be loaded.
    #[error("cannot load `{path}`: {reason}")]
    Load {
        /// The path as requested.
        path: String,
        /// The reason.
        reason: LoadError,
    },
    /// A file includes itself, directly or through others.
    #[error("`{path}` includes itself")]
    RecursiveInclude {
        /// The file.
        path: String,
    },
    /// Includes nested too deeply, or too many of them.
    #[error("includes are nested deeper than {max_depth} or number more than {max_count}")]
    TooManyIncludes {
        /// The maximum nesting depth.
        max_depth: usize,
        /// The maximum number of includes in one text.
        max_count: usize,
    },
    /// A conditional that is still open at the end of its file; the location is that of the opening line.
    #[error("`{directive}` has no `#endif`")]
    UnclosedConditional {
        /// The directive that opened the conditional.
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
        /// The line of the `#else`.
        else_line: u32,
    },
    /// A directive without the name of a macro.
    #[error("expected a macro name after `{directive}`, found {found}")]
    ExpectedName {
        /// The directive.
        directive: &'static str,
        /// The text found instead.
        found: String,
    },
    /// A macro from the options or the call with an invalid name.
    #[error("`{name}` is not a valid macro name")]
    MacroName {
        /// The name.
        name: String,
    },
    /// Macro parameters that are not comma-separated names without duplicates.
    #[error("expected parameters of macro `{name}` such as `(a, b)`, without duplicates, found {found}")]
    BadParameters {
        /// The macro.
        name: String,
        /// The text found instead.
        found: String,
    },
    /// `##` without a left or a right side.
    #[error("`##` at the start or end of macro `{name}`")]
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
    /// A macro whose expansion contains itself.
    #[error("macro `{name}` is recursive")]
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
    #[error("unclosed call of macro `{name}`")]
    UnclosedCall {
        /// The macro.
        name: String,
    },
    /// Macro calls nested too deeply in the arguments of calls.
    #[error("macro calls are nested deeper than {limit} at macro `{name}`")]
    CallsTooDeep {
        /// The macro.
        name: String,
        /// The maximum nesting depth.
        limit: u32,
    },
    /// Macros whose expansion makes one line too large.
    #[error("macro `{name}` makes this line too large")]
    ExpansionTooLarge {
        /// The macro that exceeded the limit.
        name: String,
    },
    /// An expression with a missing value.
    #[error("expected a value, found {found}")]
    ExpectedValue {
        /// The text found instead.
        found: String,
    },
    /// An expression that continues with something other than an operator.
    #[error("expected an operator, found `{found}`")]
    ExpectedOperator {
        /// The text found instead.
        found: String,
    },
    /// An expression with a missing closing parenthesis.
    #[error("expected `)`, found {found}")]
    ExpectedClose {
        /// The text found instead.
        found: String,
    },
    /// `defined` without a name.
    #[error("expected a name after `defined`, found {found}")]
    ExpectedDefinedName {
        /// The text found instead.
        found: String,
    },
    /// A number in an expression that is not a 64-bit integer.
    #[error("`{text}` is not a valid integer in `#if`")]
    BadNumber {
        /// The number as written.
        text: String,
    },
    /// A macro in an expression whose value is not an expression.
    #[error("macro `{name}` is `{value}`, which is no integer expression")]
    MacroValue {
        /// The macro.
        name: String,
        /// Its value.
        value: String,
    },
    /// `/` or `%` by zero in an expression.
    #[error("division by zero")]
    DivisionByZero,
    /// Parentheses, signs or macros nested too deeply in an expression.
    #[error("the expression is nested deeper than {limit}")]
    ExpressionTooDeep {
        /// The maximum nesting depth.
        limit: u32,
    },
}
