//! Requests for embeddings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::Response;
use chaski::Embedding;
use chaski::embedding::{EmbedRequest, Readings};
use serde_json::Value;

use super::body;
use super::guard::Caller;
use super::respond::json;
use crate::app::App;
use crate::dialect::openai::embeddings::{EmbedAsk, ask};
use crate::error::{ApiError, Kind};
use crate::model::Served;
use crate::models::Lease;

/// While texts run, steps of the model are looked for as often as this.
const SIGN: Duration = Duration::from_secs(1);

/// Waits for results. Steps of the model are signs of life, since there are no tokens that could be.
pub(super) async fn wait<T>(
    app: &App,
    served: &Served,
    mut readings: Readings<T>,
) -> Result<Vec<T>, ApiError> {
    let mut n_step = served.load().n_step;
    loop {
        let results = tokio::time::timeout(SIGN, &mut readings).await;
        let before = std::mem::replace(&mut n_step, served.load().n_step);
        if n_step != before {
            app.metrics.sign();
        }
        if let Ok(results) = results {
            return Ok(results?);
        }
    }
}

/// Reads a body and computes its embeddings, all at once.
async fn embed(
    app: &App,
    caller: &Caller,
    body: Value,
) -> Result<(Lease, EmbedAsk, Vec<Embedding>), ApiError> {
    let (mut open, start) = (app.open(caller.limited())?, Instant::now());
    let served = app.model(body["model"].as_str()).await?;
    let facts = served.facts.clone();
    let asked = tokio::task::spawn_blocking(move || ask(&body, &facts)).await;
    let asked = asked.unwrap_or_else(|_| Err(ApiError::new(Kind::Internal, "reading the request failed")))?;
    let request = EmbedRequest::new(asked.inputs.clone(), asked.options);
    let readings = served.embed(EmbedRequest { client: caller.client, ..request })?;
    let found = wait(app, &served, readings).await?;
    let n_token = found.iter().map(|embedding| embedding.n_token).sum();
    open.used(n_token);
    app.metrics.read(&served.facts.id, n_token, start.elapsed());
    Ok((served, asked, found))
}

pub(super) async fn openai(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let (served, asked, found) = embed(&app, &caller, body).await?;
    Ok(json(&asked.openai(&served.facts.id, &found)?))
}

pub(super) async fn llama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let (_, asked, found) = embed(&app, &caller, body).await?;
    Ok(json(&asked.llama(&found)))
}

pub(super) async fn ollama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let start = Instant::now();
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let (served, asked, found) = embed(&app, &caller, body).await?;
    Ok(json(&asked.ollama(&served.facts.id, &found, start.elapsed())?))
}

pub(super) async fn old_ollama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let (_, asked, found) = embed(&app, &caller, body).await?;
    Ok(json(&asked.old_ollama(&found)?))
}
