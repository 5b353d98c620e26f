//! The operations of a router.

use std::sync::Arc;

use axum::routing::MethodRouter;

use crate::app::App;
use crate::error::{ApiError, Kind};
use crate::openapi::{Answer, Operation};

/// An operation of the API, and what does it.
pub(super) type Endpoint = (&'static Operation, MethodRouter<Arc<App>>);

/// The response of an operation that is always refused.
pub(super) fn refuse(operation: &Operation) -> ApiError {
    match operation.answer {
        Answer::Refused(_, why) => ApiError::new(Kind::Unsupported, why),
        _ => unreachable!("the operation is refused"),
    }
}
