//! Endpoints about tokens and prompts.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use serde_json::{Value, json};

use super::body;
use super::respond::{json as respond, model_header};
use crate::app::App;
use crate::ask::Read;
use crate::dialect::anthropic;
use crate::dialect::llama::tokens;
use crate::error::ApiError;
use crate::ids;
use crate::model::Served;

/// Computes a value from a body, on a thread that may take its time.
async fn of_body(
    app: Arc<App>,
    request: Request,
    f: fn(&Served, &Value) -> Result<Value, ApiError>,
) -> Result<Response<Body>, ApiError> {
    let asked = body::json(request.into_body(), app.bounds().max_body).await?;
    answer(app, asked, f).await
}

/// The same for a body that was read.
pub(super) async fn answer(
    app: Arc<App>,
    asked: Value,
    f: fn(&Served, &Value) -> Result<Value, ApiError>,
) -> Result<Response<Body>, ApiError> {
    let name = body::model(&asked)?;
    let lease = app.model(name).await?;
    let (served, called) = (Arc::clone(&lease), lease.facts.called(name));
    let mut response = respond(&body::read(move || f(&served, &asked)).await?);
    model_header(response.headers_mut(), called, &lease.facts.id);
    Ok(response)
}

pub(super) async fn tokenize(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    of_body(app, request, tokens::tokenize).await
}

pub(super) async fn detokenize(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    of_body(app, request, tokens::detokenize).await
}

pub(super) async fn apply_template(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    of_body(app, request, |served, body| Ok(json!({"prompt": tokens::chat_prompt(served, body)?.0}))).await
}

/// As routers ask that know prefixes.
pub(super) async fn render(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    of_body(app, request, |served, body| {
        let (text, tokens) = tokens::chat_prompt(served, body)?;
        Ok(json!({"request_id": ids::new("req_"), "token_ids": tokens, "prompt": text}))
    })
    .await
}

/// The same for prompts without a conversation.
pub(super) async fn render_text(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    of_body(app, request, |served, body| {
        let read = tokens::prompts(served, body)?;
        let rendered = |read: Read| json!({"request_id": ids::new("req_"), "token_ids": read.tokens, "prompt": read.text});
        let mut all: Vec<Value> = read.into_iter().map(rendered).collect();
        Ok(if all.len() == 1 { all.remove(0) } else { all.into() })
    })
    .await
}

pub(super) async fn input_tokens(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    of_body(app, request, |served, body| {
        let n = tokens::chat_prompt(served, body)?.1.len();
        Ok(json!({"object": "response.input_tokens", "input_tokens": n}))
    })
    .await
}

/// As Anthropic has it.
pub(super) async fn count_message(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let asked = body::json(request.into_body(), app.bounds().max_body).await?;
    body::named_model(&asked)?;
    answer(app, asked, anthropic::messages::count_tokens).await
}
