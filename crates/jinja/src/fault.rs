//! Failures of the interpreter.

/// A failure with its line in the template, from 1; 0 while unknown.
#[derive(Clone, Debug)]
pub struct Fault {
    pub line: u32,
    pub kind: FaultKind,
}

/// The kinds of failures.
#[derive(Clone, Debug)]
pub enum FaultKind {
    /// Parsing or evaluation failed.
    Failed(String),
    /// The template called `raise_exception`.
    Raised(String),
    /// A resource limit was reached.
    Limit { what: &'static str, limit: u64 },
}

pub type Result<T> = std::result::Result<T, Box<Fault>>;

impl Fault {
    pub(crate) fn limit(what: &'static str, limit: u64) -> Box<Fault> {
        Box::new(Fault { line: 0, kind: FaultKind::Limit { what, limit } })
    }

    pub(super) fn raised(message: String) -> Box<Fault> {
        Box::new(Fault { line: 0, kind: FaultKind::Raised(message) })
    }

    /// The same failure, at `line` unless its line is known already.
    pub(super) fn at(mut self: Box<Self>, line: u32) -> Box<Fault> {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

/// A failure of evaluation. Messages quote no value in full, so that they stay short.
pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Box::new(Fault { line: 0, kind: FaultKind::Failed(message.into()) }))
}
