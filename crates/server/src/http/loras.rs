//! The LoRAs of a model, and their scales.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Query, Request, State};
use axum::http::Response;
use serde_json::json;

use super::body;
use super::guard::Caller;
use super::respond::json as respond;
use super::status::Which;
use crate::app::App;
use crate::error::{ApiError, Kind};
use crate::model::Served;

/// The loaded model that a question means.
async fn served(app: &App, which: &Which) -> Result<Arc<Served>, ApiError> {
    let id = app.model_id(which.model.as_deref()).await?;
    app.models.served(&id).ok_or_else(|| match app.models.is_ready() {
        true => ApiError::field("model", format!("the model `{id}` is not loaded")),
        false => ApiError::new(Kind::Loading, "Loading model").retry(1),
    })
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    which: Query<Which>,
) -> Result<Response<Body>, ApiError> {
    Ok(respond(&served(&app, &which).await?.facts.loras.list()))
}

/// Sets the scales of requests that say nothing, for an operator.
pub(super) async fn set(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    which: Query<Which>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    caller.admin()?;
    let served = served(&app, &which).await?;
    let scales = body::json(request.into_body(), app.config.max_body).await?;
    served.facts.loras.set(&scales)?;
    Ok(respond(&json!({"success": true})))
}
