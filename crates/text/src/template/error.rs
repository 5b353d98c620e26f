//! Errors of chat templates.

use chaski_jinja::{Fault, FaultKind};

/// A failure to parse or render a chat template.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template is not valid Jinja.
    #[error("chat template, line {line}")]
    Parse {
        /// Line of the template, from 1.
        line: usize,
        /// The cause.
        #[source]
        source: TemplateFault,
    },
    /// The template rejected the conversation (`raise_exception`).
    #[error("chat template refuses the conversation: {message}")]
    Raised {
        /// The template's own message.
        message: String,
    },
    /// Parsing or rendering was aborted at a limit: a template is a program supplied with the model, and need
    /// not terminate.
    #[error("chat template, line {line}, exceeded the limit of {limit} {what}")]
    Limit {
        /// Line of the template, from 1; 0 if unknown.
        line: usize,
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// There is no last message to continue.
    #[error("{0}, so it cannot be continued")]
    Continue(&'static str),
    /// Evaluation failed.
    #[error("chat template, line {line}")]
    Render {
        /// Line of the template, from 1; 0 if unknown.
        line: usize,
        /// The cause.
        #[source]
        source: TemplateFault,
    },
}

/// The cause of a failure, in the words of Python and Jinja2 where these have the same one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TemplateFault(String);

impl TemplateError {
    pub(super) fn from_parse(fault: Fault) -> TemplateError {
        TemplateError::of(fault, |line, source| TemplateError::Parse { line, source })
    }

    pub(super) fn from_render(fault: Fault) -> TemplateError {
        TemplateError::of(fault, |line, source| TemplateError::Render { line, source })
    }

    fn of(fault: Fault, failed: impl Fn(usize, TemplateFault) -> TemplateError) -> TemplateError {
        let line = fault.place.pos.line as usize;
        match fault.kind {
            FaultKind::Failed(message) => failed(line, TemplateFault(message)),
            // Chat templates have no functions of the program, and may print `none`.
            kind @ (FaultKind::Custom(_) | FaultKind::Nothing) => {
                failed(line, TemplateFault(kind.to_string()))
            }
            FaultKind::Raised(message) => TemplateError::Raised { message },
            FaultKind::Limit { what, limit } => TemplateError::Limit { line, what, limit },
        }
    }
}
