//! Requests for scores.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::Response;
use chaski::serve::RankRequest;
use serde_json::Value;

use super::body;
use super::guard::Caller;
use super::readings::wait;
use super::respond::{json, model_header};
use crate::app::App;
use crate::dialect::openai::rerank::{self, ScoreAsk};
use crate::error::{ApiError, Kind};
use crate::{clock, ids};

pub(super) async fn rerank(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    scores(&app, &caller, request, "rerank-", rerank::rerank).await
}

pub(super) async fn score(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    scores(&app, &caller, request, "score-", rerank::score).await
}

/// Reads a body and computes its scores, all at once.
async fn scores(
    app: &App,
    caller: &Caller,
    request: Request,
    prefix: &'static str,
    read: fn(&Value) -> Result<ScoreAsk, ApiError>,
) -> Result<Response<Body>, ApiError> {
    let start = Instant::now();
    let asked = body::json(request.into_body(), app.bounds().max_body).await?;
    let mut open = app.open(caller.limited())?;
    let name = body::model(&asked)?;
    let served = app.model(name).await?;
    let called = served.facts.called(name);
    caller.span.named(name);
    let unable = || ApiError::new(Kind::Unsupported, "this model does not rank documents");
    let ranker = served.facts.ranker.clone().ok_or_else(unable)?;
    let (facts, by) = (served.facts.clone(), ranker.by());
    let (ask, prompts, lora) = body::read(move || {
        let ask = read(&asked)?;
        let prompt = |(query, document): &(String, String)| facts.tokens_of_pair(&ranker, query, document);
        let prompts = ask.pairs.iter().map(prompt).collect::<Result<Vec<_>, _>>()?;
        Ok((ask, prompts, facts.scales(&asked, called)?))
    })
    .await?;
    app.check_prompts(&served.facts, prompts.iter().map(Vec::len))?;
    let pair = |(query, document): &(String, String)| format!("{query}\n{document}");
    caller.prompts(app, &served.facts.id, ask.pairs.iter().map(pair));
    let n_token = prompts.iter().map(Vec::len).sum();
    let waiting = app.queue(&served, prompts.iter().map(Vec::len), 1)?;
    let (client, salt) = (caller.client, served.salt(caller.client, ask.salt.as_deref()));
    let running = served.rank(RankRequest { prompts, by, lora, priority: 0, client, salt })?;
    let scores = wait(app, &served, running, waiting).await?;
    if scores.iter().any(|score| !score.is_finite()) {
        return Err(ApiError::new(Kind::Internal, "the model's scores are not finite"));
    }
    open.used(n_token);
    caller.read(app, "rerank", &served.facts.id, n_token, start);
    let id = ids::new(prefix);
    let mut response = json(&ask.body((&id, clock::now(), &served.facts.id), &scores, n_token));
    model_header(response.headers_mut(), called, &served.facts.id);
    Ok(response)
}
