//! The LoRAs of a model, and their scales.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use serde_json::json;

use super::body;
use super::extract::InQuery;
use super::respond::json as respond;
use super::status::Which;
use crate::app::App;
use crate::error::ApiError;

pub(super) async fn list(
    State(app): State<Arc<App>>,
    InQuery(which): InQuery<Which>,
) -> Result<Response<Body>, ApiError> {
    Ok(respond(&which.served(&app).await?.facts.loras.list()))
}

/// Sets the scales of requests that say nothing.
pub(super) async fn set(
    State(app): State<Arc<App>>,
    InQuery(which): InQuery<Which>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let served = which.served(&app).await?;
    let scales = body::json(request.into_body(), app.bounds().max_body).await?;
    served.facts.loras.set(&scales)?;
    Ok(respond(&json!({"success": true})))
}
