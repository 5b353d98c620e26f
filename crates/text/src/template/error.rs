//! Errors of chat templates.

use std::sync::Arc;

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
        source: Arc<minijinja::Error>,
    },
    /// The template rejected the conversation (`raise_exception`).
    #[error("chat template refuses the conversation: {message}")]
    Raised {
        /// The template's own message.
        message: String,
    },
    /// Rendering was aborted at a limit: a template is a program supplied with the model, and need not
    /// terminate.
    #[error("chat template exceeded the limit of {limit} {what}; it may never terminate")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// Evaluation failed.
    #[error("chat template, line {line}")]
    Render {
        /// Line of the template, from 1; 0 if unknown.
        line: usize,
        /// The cause.
        #[source]
        source: Arc<minijinja::Error>,
    },
}

/// The error that `raise_exception` passes through the engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub(super) String);

impl TemplateError {
    /// Distinguishes the template's own rejection from a failure.
    pub(super) fn from_render(source: minijinja::Error) -> TemplateError {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&source);
        while let Some(error) = cause {
            if let Some(Raised(message)) = error.downcast_ref() {
                return TemplateError::Raised { message: message.clone() };
            }
            cause = error.source();
        }
        match source.kind() {
            minijinja::ErrorKind::OutOfFuel => {
                return TemplateError::Limit { what: "steps", limit: super::limits::MAX_STEPS };
            }
            // Writing to memory only fails at the limit.
            minijinja::ErrorKind::WriteFailure => {
                return TemplateError::Limit {
                    what: "bytes of text",
                    limit: super::limits::MAX_BYTES as u64,
                };
            }
            _ => {}
        }
        TemplateError::Render { line: source.line().unwrap_or(0), source: Arc::new(source) }
    }
}
