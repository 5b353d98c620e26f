//! Requests for embeddings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::Response;
use chaski::embedding::{EmbedRequest, Embedding};
use serde_json::Value;

use super::body;
use super::guard::Caller;
use super::ollama::Stays;
use super::readings::wait;
use super::respond::{json, model_header};
use crate::app::App;
use crate::dialect::openai::embeddings::{EmbedAsk, ask};
use crate::error::{ApiError, Kind};
use crate::model::Called;
use crate::models::Lease;

/// Embeddings of a request, and the model that made them.
struct Embedded {
    lease: Lease,
    called: Called,
    ask: EmbedAsk,
    found: Vec<Embedding>,
    /// Time until the model was there.
    loading: Duration,
}

impl Embedded {
    /// The id of the model.
    fn model(&self) -> &str {
        &self.lease.facts.id
    }

    fn respond(&self, body: &Value) -> Response<Body> {
        let mut response = json(body);
        model_header(response.headers_mut(), self.called, self.model());
        response
    }
}

/// Computes the embeddings that a body asks for, all at once.
async fn embed(app: &App, caller: &Caller, asked: Value) -> Result<Embedded, ApiError> {
    let (mut open, start) = (app.open(caller.limited())?, Instant::now());
    let name = body::model(&asked)?;
    let served = app.model(name).await?;
    let loading = start.elapsed();
    let called = served.facts.called(name);
    caller.span.named(name);
    let facts = served.facts.clone();
    let (asked, lora) = body::read(move || Ok((ask(&asked, &facts)?, facts.scales(&asked, called)?))).await?;
    let n_tokens = || asked.inputs.iter().map(Vec::len);
    app.check_prompts(&served.facts, n_tokens())?;
    if app.config.log_prompts {
        let text = |tokens: &Vec<u32>| served.facts.text_of(tokens);
        let texts: Vec<String> = asked.inputs.iter().map(text).collect::<Result<_, _>>()?;
        caller.prompts(app, &served.facts.id, texts.into_iter());
    }
    let waiting = app.queue(&served, n_tokens(), 1)?;
    let salt = served.salt(caller.client, asked.salt.as_deref());
    let request = EmbedRequest::new(asked.inputs.clone(), asked.options);
    let running = served.embed(EmbedRequest { lora, client: caller.client, salt, ..request })?;
    let found = wait(app, &served, running, waiting).await?;
    // JSON has no other numbers.
    if found.iter().flat_map(|embedding| embedding.vectors.iter().flatten()).any(|value| !value.is_finite()) {
        return Err(ApiError::new(Kind::Internal, "the model's embedding is not finite"));
    }
    let n_token = found.iter().map(|embedding| embedding.n_token).sum();
    open.used(n_token);
    caller.read(app, "embeddings", &served.facts.id, n_token, start);
    Ok(Embedded { lease: served, called, ask: asked, found, loading })
}

pub(super) async fn openai(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let embedded = embed(&app, &caller, body).await?;
    Ok(embedded.respond(&embedded.ask.openai(embedded.model(), &embedded.found)?))
}

pub(super) async fn llama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let embedded = embed(&app, &caller, body).await?;
    Ok(embedded.respond(&embedded.ask.llama(&embedded.found)))
}

/// The embeddings of a body in ollama's form, which names its model and may say how long that stays.
async fn of_ollama(app: &App, caller: &Caller, request: Request) -> Result<Embedded, ApiError> {
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let stays = Stays::of(&body)?;
    let id = app.model_id(Some(body::named_model(&body)?)).await?;
    stays.keep(app, caller, &id);
    embed(app, caller, body).await
}

pub(super) async fn ollama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let start = Instant::now();
    let embedded = of_ollama(&app, &caller, request).await?;
    let times = [start.elapsed(), embedded.loading];
    Ok(embedded.respond(&embedded.ask.ollama(embedded.model(), &embedded.found, times)?))
}

pub(super) async fn old_ollama(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let embedded = of_ollama(&app, &caller, request).await?;
    Ok(embedded.respond(&embedded.ask.old_ollama(&embedded.found)?))
}
