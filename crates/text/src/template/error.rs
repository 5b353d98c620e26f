//! What can go wrong with a chat template.

use std::sync::Arc;

/// Why a template could not be read or rendered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template is not valid Jinja.
    #[error("chat template, line {line}")]
    Parse {
        /// Line of the template, from 1.
        line: usize,
        /// What is wrong.
        #[source]
        source: Arc<minijinja::Error>,
    },
    /// The template refused the conversation (`raise_exception`).
    #[error("chat template refuses the conversation: {message}")]
    Raised {
        /// The template's own words.
        message: String,
    },
    /// Rendering was given up: a template of a model is a program, and nobody says that it ends.
    #[error("chat template: expected at most {limit} {what}, found more; the template may never end")]
    Limit {
        /// What there was too much of.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
    },
    /// Evaluation failed.
    #[error("chat template, line {line}")]
    Render {
        /// Line of the template, from 1; 0 if it is not known.
        line: usize,
        /// What is wrong.
        #[source]
        source: Arc<minijinja::Error>,
    },
}

/// What `raise_exception` throws through the engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub(super) String);

impl TemplateError {
    /// Tells the template's own refusal from a failure.
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
            // Only the limit makes writing to memory fail.
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
