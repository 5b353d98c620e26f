//! Endpoints that routers in front of several servers ask, and their operators.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde_json::{Value, json};

use super::extract::InQuery;
use super::respond::json as respond;
use super::status::Which;
use crate::app::App;
use crate::error::ApiError;
use crate::model::Served;

/// As SGLang's routers ask.
pub(super) async fn server_info(
    State(app): State<Arc<App>>,
    InQuery(which): InQuery<Which>,
) -> Result<Response<Body>, ApiError> {
    let served = which.any_served(&app).await?;
    let (facts, load) = (&served.facts, served.load());
    Ok(respond(&json!({
        "model_path": facts.file,
        "served_model_name": facts.id,
        "tp_size": 1,
        "dp_size": 1,
        "max_running_requests": facts.n_seq,
        "max_total_num_tokens": load.n_token(),
        "context_length": facts.n_ctx,
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

pub(super) async fn model_info(
    State(app): State<Arc<App>>,
    InQuery(which): InQuery<Which>,
) -> Result<Response<Body>, ApiError> {
    let facts = which.any_served(&app).await?.facts.clone();
    Ok(respond(&json!({"model_path": facts.file, "tokenizer_path": "", "is_generation": !facts.embeds})))
}

/// Requests that run or wait, of all models.
pub(super) async fn load(State(app): State<Arc<App>>) -> Response<Body> {
    let n: usize =
        app.models.loaded().iter().map(|served| served.load()).map(|l| l.n_running + l.n_waiting).sum();
    respond(&json!({"server_load": n}))
}

/// The load of each model.
pub(super) async fn loads(State(app): State<Arc<App>>) -> Response<Body> {
    let load = |served: &Arc<Served>| {
        let load = served.load();
        json!({
            "dp_rank": 0,
            "model": served.facts.id,
            "num_running_reqs": load.n_running,
            "num_waiting_reqs": load.n_waiting,
            "num_used_tokens": load.n_used(),
            "max_total_num_tokens": load.n_token(),
        })
    };
    let loads: Vec<Value> = app.models.loaded().iter().map(load).collect();
    respond(&json!({"loads": loads}))
}

/// Empties the caches of prefixes of a model, or of all.
pub(super) async fn flush_cache(
    State(app): State<Arc<App>>,
    InQuery(which): InQuery<Which>,
) -> Result<Response<Body>, ApiError> {
    let models = match which.is_named() {
        true => vec![which.served(&app).await?],
        false => app.models.loaded(),
    };
    for served in models {
        served.flush_cache().await?;
    }
    Ok(respond(&json!({"success": true})))
}

/// Ends the server as a signal does.
pub(super) async fn drain(State(app): State<Arc<App>>) -> Response<Body> {
    app.stop.notify_one();
    respond(&json!({"success": true}))
}
