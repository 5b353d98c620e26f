//! Reasons for refusing a request, or ending it early.

use std::sync::Arc;

use chaski_schedule::LimitsError;
pub use chaski_schedule::Refused;

use crate::error::ModelError;

/// An error of a request. Cloneable, since all requests may get the same one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A prompt that cannot be served.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The service is full; retry later.
    #[error("the queue is full: {found} requests are running or waiting, and the limit is {limit}")]
    Busy {
        /// Open requests.
        found: usize,
        /// Maximum number of open requests.
        limit: usize,
    },
    /// Inconsistent capacities of the executor.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// An error of the model, sampler or device.
    #[error(transparent)]
    Model(Arc<ModelError>),
    /// The driver was dropped before the end of the answer.
    #[error("the service was stopped")]
    Stopped,
}

impl From<ModelError> for ServeError {
    fn from(error: ModelError) -> Self {
        ServeError::Model(Arc::new(error))
    }
}
