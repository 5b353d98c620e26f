//! The operations of a router.

use std::sync::Arc;

use axum::routing::MethodRouter;

use crate::app::App;
use crate::openapi::Operation;

/// An operation of the API, and what does it.
pub(super) type Endpoint = (&'static Operation, MethodRouter<Arc<App>>);
