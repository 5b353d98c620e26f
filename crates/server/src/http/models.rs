//! The list of models.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Response;

use super::respond::json;
use crate::app::App;
use crate::dialect::openai::models;
use crate::error::{ApiError, Kind};

pub(super) async fn list(State(app): State<Arc<App>>) -> Response<Body> {
    let all = app.models.all();
    json(&models::list(all.iter().map(|served| &*served.facts)))
}

pub(super) async fn one(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response<Body>, ApiError> {
    let all = app.models.all();
    match all.iter().find(|served| served.facts.is_called(&id)) {
        Some(served) => Ok(json(&models::model(&served.facts))),
        None => Err(ApiError::new(Kind::Model, format!("the model `{id}` does not exist"))),
    }
}
