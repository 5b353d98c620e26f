//! Endpoints about the server. None of them touches the thread of a model.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use serde_json::json;

use super::extract::InQuery;
use super::guard::Caller;
use super::respond::{json as respond, with_type};
use crate::app::App;
use crate::dialect::llama::props;
use crate::error::{ApiError, Kind};
use crate::metrics::openmetrics;
use crate::model::Served;

pub(super) async fn live() -> Response<Body> {
    respond(&json!({"status": "ok"}))
}

/// An error unless requests are taken, and answered.
pub(super) async fn health(State(app): State<Arc<App>>) -> Result<Response<Body>, ApiError> {
    if app.is_draining.load(Ordering::Relaxed) {
        return Err(ApiError::new(Kind::Draining, "the server is shutting down").retry(1));
    }
    if !app.models.is_ready() {
        return Err(ApiError::new(Kind::Loading, "Loading model").retry(1));
    }
    if app.is_stalled() {
        let message = "requests are open, but no step has ended for a long time";
        return Err(ApiError::new(Kind::Loading, message).retry(5));
    }
    Ok(respond(&json!({"status": "ok"})))
}

fn off(what: &str, option: &str) -> ApiError {
    ApiError::new(Kind::Unsupported, format!("this server offers no {what}; start it with `{option}`"))
}

/// Measurements, as OpenMetrics has them for those who say that they take it.
pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
) -> Result<Response<Body>, ApiError> {
    if !app.config.metrics {
        return Err(off("metrics", "--metrics"));
    }
    let text = app.metrics.text(&app.models.loaded(), app.models.n_byte());
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|kinds| kinds.to_str().ok());
    let mut response = match accepted.into_iter().any(|kinds| kinds.contains("application/openmetrics-text"))
    {
        true => with_type(openmetrics(&text), "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        false => with_type(text, "text/plain; version=0.0.4; charset=utf-8"),
    };
    // As llama-server has it, for rates since the start.
    let start = HeaderValue::from(app.metrics.started_at());
    response.headers_mut().insert(HeaderName::from_static("process-start-time-unix"), start);
    Ok(response)
}

/// The model that a question about its state means. It is not loaded for it.
#[derive(serde::Deserialize)]
pub(super) struct Which {
    model: Option<String>,
    fail_on_no_slot: Option<String>,
}

impl Which {
    /// True if it names a model.
    pub(super) fn is_named(&self) -> bool {
        self.model.is_some()
    }

    /// The model, which must be loaded.
    pub(super) async fn served(&self, app: &App) -> Result<Arc<Served>, ApiError> {
        let id = app.model_id(self.model.as_deref()).await?;
        app.models.served(&id).ok_or_else(|| match app.models.is_ready() {
            true => ApiError::field("model", format!("the model `{id}` is not loaded")),
            false => ApiError::new(Kind::Loading, "Loading model").retry(1),
        })
    }

    /// The same; the first loaded one for a question without a name whose default is not loaded.
    pub(super) async fn any_served(&self, app: &App) -> Result<Arc<Served>, ApiError> {
        match self.served(app).await {
            Err(error) if self.model.is_none() => app.models.loaded().into_iter().next().ok_or(error),
            found => found,
        }
    }
}

/// The properties of a model; without a name, where there is no default, those of the server.
pub(super) async fn props(
    State(app): State<Arc<App>>,
    InQuery(which): InQuery<Which>,
) -> Result<Response<Body>, ApiError> {
    if !app.config.props {
        return Err(off("properties", "--props"));
    }
    let id = match app.model_id(which.model.as_deref()).await {
        Err(error) if which.model.is_none() && error.kind == Kind::Invalid => {
            return Ok(respond(&props::router(&app.config, app.models.n_byte())));
        }
        id => id?,
    };
    match app.models.served(&id) {
        Some(served) => Ok(respond(&props::props(&served.facts, &app.config))),
        None if app.models.is_ready() => Ok(respond(&props::asleep(&id, &app.config))),
        None => Err(ApiError::new(Kind::Loading, "Loading model").retry(1)),
    }
}

/// The places of a model; none while it is not loaded.
pub(super) async fn slots(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    InQuery(which): InQuery<Which>,
) -> Result<Response<Body>, ApiError> {
    if !app.config.slots {
        return Err(off("slots", "--slots"));
    }
    let id = app.model_id(which.model.as_deref()).await?;
    let Some(served) = app.models.served(&id) else {
        return Ok(respond(&json!([])));
    };
    let is_full = served.load().n_running >= served.facts.n_seq as usize;
    let fails = which.fail_on_no_slot.as_deref().is_some_and(|flag| !matches!(flag, "" | "0" | "false"));
    if is_full && fails {
        return Err(ApiError::new(Kind::Loading, "no slot available").retry(1));
    }
    Ok(respond(&props::slots(&served, caller.is_admin)))
}
