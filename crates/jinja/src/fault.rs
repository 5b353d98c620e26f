//! Failures of the interpreter.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A position in a template: its line and its column in characters, both from 1; 0 while unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pos {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A position with its template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the template; `None` if it has none.
    pub template: Option<Arc<str>>,
    /// The position in it.
    pub pos: Pos,
}

/// A failure of parsing or rendering.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The place of the failure.
    pub place: Place,
    /// The places that include or import its template, innermost first.
    pub included_from: Vec<Place>,
    /// The kind of failure.
    pub kind: FaultKind,
}

/// The kinds of failures.
#[derive(Clone, Debug)]
pub enum FaultKind {
    /// Parsing or evaluation failed; the message.
    Failed(String),
    /// The template called `raise_exception` with this message.
    Raised(String),
    /// A template of code writes `none`.
    Nothing,
    /// The error of a function, a filter or the loader of the environment.
    Custom(Arc<dyn Error + Send + Sync>),
    /// A resource limit was reached.
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

/// A result of the interpreter.
pub type Result<T> = std::result::Result<T, Box<Fault>>;

impl Fault {
    fn new(kind: FaultKind) -> Box<Fault> {
        Box::new(Fault { place: Place::default(), included_from: Vec::new(), kind })
    }

    /// The error of a function, a filter or a loader.
    pub fn custom(error: impl Error + Send + Sync + 'static) -> Box<Fault> {
        Fault::new(FaultKind::Custom(Arc::new(error)))
    }

    pub(crate) fn limit(what: &'static str, limit: u64) -> Box<Fault> {
        Fault::new(FaultKind::Limit { what, limit })
    }

    pub(super) fn raised(message: String) -> Box<Fault> {
        Fault::new(FaultKind::Raised(message))
    }

    pub(super) fn nothing() -> Box<Fault> {
        Fault::new(FaultKind::Nothing)
    }

    /// The same failure, at `pos` unless its place is known already.
    pub(super) fn at(mut self: Box<Self>, pos: Pos) -> Box<Fault> {
        if self.place.pos.line == 0 && self.place.template.is_none() {
            self.place.pos = pos;
        }
        self
    }

    /// The same failure; places whose template is unknown are in `template`.
    pub(super) fn within(mut self: Box<Self>, template: Option<&Arc<str>>) -> Box<Fault> {
        for place in std::iter::once(&mut self.place).chain(&mut self.included_from) {
            if place.template.is_none() {
                place.template = template.cloned();
            }
        }
        self
    }

    /// The same failure, of a template that is included at `pos`.
    pub(super) fn included_at(mut self: Box<Self>, pos: Pos) -> Box<Fault> {
        self.included_from.push(Place { template: None, pos });
        self
    }
}

/// A failure of evaluation. Messages quote no value in full, so that they stay short.
pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Fault::new(FaultKind::Failed(message.into())))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pos { line, column } = self.pos;
        write!(f, "{}:{line}:{column}", self.template.as_deref().unwrap_or("template"))
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Failed(message) | FaultKind::Raised(message) => f.write_str(message),
            FaultKind::Nothing => f.write_str("`none` cannot be written"),
            FaultKind::Custom(error) => error.fmt(f),
            FaultKind::Limit { what, limit } => write!(f, "exceeded the limit of {limit} {what}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)?;
        let places = &self.included_from;
        let n_inner = match places.len() {
            n if n > MAX_PLACES => MAX_PLACES / 2,
            n => n,
        };
        let (inner, rest) = places.split_at(n_inner);
        let outer = &rest[rest.len().saturating_sub(MAX_PLACES / 2)..];
        inner.iter().try_for_each(|place| write!(f, "\n  included from {place}"))?;
        if rest.len() > outer.len() {
            write!(f, "\n  included from {} places more", rest.len() - outer.len())?;
        }
        outer.iter().try_for_each(|place| write!(f, "\n  included from {place}"))
    }
}

/// Places of a message; templates that include themselves have hundreds.
const MAX_PLACES: usize = 10;

impl Error for Fault {}
