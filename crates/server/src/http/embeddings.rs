//! Requests for embeddings.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::Response;
use chaski::Embedding;
use chaski::embedding::EmbedRequest;
use serde_json::Value;

use super::body;
use super::guard::Caller;
use super::readings::wait;
use super::respond::json;
use crate::app::App;
use crate::dialect::openai::embeddings::{EmbedAsk, ask};
use crate::error::{ApiError, Kind};
use crate::models::Lease;

/// Reads a body and computes its embeddings, all at once.
async fn embed(
    app: &App,
    caller: &Caller,
    asked: Value,
) -> Result<(Lease, EmbedAsk, Vec<Embedding>), ApiError> {
    let (mut open, start) = (app.open(caller.limited())?, Instant::now());
    let served = app.model(body::model(&asked)?).await?;
    let facts = served.facts.clone();
    let (asked, lora) = body::read(move || Ok((ask(&asked, &facts)?, facts.lora_scales(&asked)?))).await?;
    app.check_prompts(asked.inputs.iter().map(Vec::len))?;
    if app.config.log_prompts {
        let text = |tokens: &Vec<u32>| served.facts.text_of(tokens);
        let texts: Vec<String> = asked.inputs.iter().map(text).collect::<Result<_, _>>()?;
        caller.prompts(app, &served.facts.id, texts.into_iter());
    }
    let salt = served.salt(caller.client, asked.salt.as_deref());
    let request = EmbedRequest::new(asked.inputs.clone(), asked.options);
    let readings = served.embed(EmbedRequest { lora, client: caller.client, salt, ..request })?;
    let found = wait(app, &served, readings).await?;
    // JSON has no other numbers.
    if found.iter().flat_map(|embedding| embedding.vectors.iter().flatten()).any(|value| !value.is_finite()) {
        return Err(ApiError::new(Kind::Internal, "the model's embedding is not finite"));
    }
    let n_token = found.iter().map(|embedding| embedding.n_token).sum();
    open.used(n_token);
    caller.read(app, "embeddings", &served.facts.id, n_token, start);
    Ok((served, asked, found))
}

pub(super) async fn openai(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let (served, asked, found) = embed(&app, &caller, body).await?;
    Ok(json(&asked.openai(&served.facts.id, &found)?))
}

pub(super) async fn llama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let (_, asked, found) = embed(&app, &caller, body).await?;
    Ok(json(&asked.llama(&found)))
}

pub(super) async fn ollama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let start = Instant::now();
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let (served, asked, found) = embed(&app, &caller, body).await?;
    Ok(json(&asked.ollama(&served.facts.id, &found, start.elapsed())?))
}

pub(super) async fn old_ollama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let (_, asked, found) = embed(&app, &caller, body).await?;
    Ok(json(&asked.old_ollama(&found)?))
}
