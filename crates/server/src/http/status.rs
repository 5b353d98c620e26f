//! Endpoints about the server. None of them touches the thread of a model.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse as _;
use serde_json::json;

use super::respond::{json as respond, with_type};
use crate::app::App;
use crate::dialect::llama::props;
use crate::error::{ApiError, Kind};

pub(super) async fn live() -> Response<Body> {
    respond(&json!({"status": "ok"}))
}

/// An error unless requests are taken, and answered.
pub(super) async fn health(State(app): State<Arc<App>>) -> Result<Response<Body>, ApiError> {
    if app.is_draining.load(Ordering::Relaxed) {
        return Err(ApiError::new(Kind::Draining, "the server is shutting down").retry(1));
    }
    app.model(None)?;
    if app.is_stalled() {
        let message = "requests are open, but no step has ended for a long time";
        return Err(ApiError::new(Kind::Loading, message).retry(5));
    }
    Ok(respond(&json!({"status": "ok"})))
}

fn off(what: &str, option: &str) -> ApiError {
    ApiError::new(Kind::Unsupported, format!("this server offers no {what}; start it with `{option}`"))
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Result<Response<Body>, ApiError> {
    if !app.config.metrics {
        return Err(off("metrics", "--metrics"));
    }
    Ok(with_type(app.metrics.text(&app.models.all()), "text/plain; version=0.0.4; charset=utf-8"))
}

pub(super) async fn props(State(app): State<Arc<App>>) -> Result<Response<Body>, ApiError> {
    if !app.config.props {
        return Err(off("properties", "--props"));
    }
    Ok(respond(&props::props(&app.model(None)?.facts, &app.config)))
}

#[derive(serde::Deserialize)]
pub(super) struct SlotsQuery {
    fail_on_no_slot: Option<String>,
}

pub(super) async fn slots(
    State(app): State<Arc<App>>,
    query: Query<SlotsQuery>,
) -> Result<Response<Body>, ApiError> {
    if !app.config.slots {
        return Err(off("slots", "--slots"));
    }
    let served = app.model(None)?;
    let load = served.load();
    let is_full = load.n_running >= served.facts.n_seq as usize;
    if is_full && query.fail_on_no_slot.is_some() {
        return Ok(StatusCode::SERVICE_UNAVAILABLE.into_response());
    }
    Ok(respond(&props::slots(&served.facts, &load)))
}
