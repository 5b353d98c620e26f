//! Reasons to refuse a request, or to end it without an answer.

use std::sync::Arc;

use chaski_schedule::LimitsError;
pub use chaski_schedule::Refused;

use crate::error::ModelError;

/// An error of a request. All requests can have the same one, so it can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A prompt that cannot be served.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Too many requests run or wait; the same request may be taken later.
    #[error("{found} requests run or wait already, and at most {limit} can")]
    Busy {
        /// Requests that have not ended.
        found: usize,
        /// Requests that may run or wait.
        limit: usize,
    },
    /// The executor's sizes do not fit together.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The model, its sampler or its device.
    #[error(transparent)]
    Model(Arc<ModelError>),
    /// The driver was dropped before the answer's end.
    #[error("the service was stopped")]
    Stopped,
}

impl From<ModelError> for ServeError {
    fn from(error: ModelError) -> Self {
        ServeError::Model(Arc::new(error))
    }
}
