//! Requests for embeddings.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use chaski::Embedding;
use serde_json::Value;

use super::body;
use super::respond::json;
use crate::app::App;
use crate::dialect::openai::embeddings::{EmbedAsk, ask};
use crate::error::{ApiError, Kind};
use crate::models::Lease;

/// Reads a body and computes its embeddings.
pub(super) async fn embed(app: &App, body: Value) -> Result<(Lease, EmbedAsk, Vec<Embedding>), ApiError> {
    let _open = app.open()?;
    let served = app.model(body["model"].as_str()).await?;
    let embedder = served.embedder()?;
    let facts = served.facts.clone();
    let asked = tokio::task::spawn_blocking(move || ask(&body, &facts)).await;
    let asked = asked.unwrap_or_else(|_| Err(ApiError::new(Kind::Internal, "reading the request failed")))?;
    let mut found = Vec::new();
    for tokens in &asked.inputs {
        found.push(embedder.embed(tokens.clone(), asked.options).await?);
        app.metrics.sign();
    }
    Ok((served, asked, found))
}

pub(super) async fn openai(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let (served, asked, found) = embed(&app, body).await?;
    Ok(json(&asked.openai(&served.facts.id, &found)?))
}

pub(super) async fn llama(State(app): State<Arc<App>>, request: Request) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let (_, asked, found) = embed(&app, body).await?;
    Ok(json(&asked.llama(&found)))
}

pub(super) async fn ollama(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let start = Instant::now();
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let (served, asked, found) = embed(&app, body).await?;
    Ok(json(&asked.ollama(&served.facts.id, &found, start.elapsed())?))
}

pub(super) async fn old_ollama(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let (_, asked, found) = embed(&app, body).await?;
    Ok(json(&asked.old_ollama(&found)?))
}
