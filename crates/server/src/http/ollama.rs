//! ollama's endpoints.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::Response;
use axum::routing::{any, delete, get, post};
use serde_json::Value;

use super::answer::answer;
use super::body;
use super::guard::Caller;
use super::respond::{json, with_type};
use crate::app::App;
use crate::dialect::ollama::{chat, generate, models};
use crate::dialect::{Dialect, Wire};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::model::Facts;

/// An endpoint that answers, or only loads the model.
struct Endpoint {
    dialect: Dialect,
    /// The response to a body that asks for nothing.
    loaded: fn(&Value, &Facts) -> Result<Option<Value>, ApiError>,
}

static CHAT: Endpoint = Endpoint {
    dialect: Dialect { ask: chat::ask, wire: Wire::Lines, prefix: "chat-" },
    loaded: chat::loaded,
};
static GENERATE: Endpoint = Endpoint {
    dialect: Dialect { ask: generate::ask, wire: Wire::Lines, prefix: "gen-" },
    loaded: generate::loaded,
};

/// Endpoints that change files of models, and the way to the same end.
const UNSUPPORTED: [(&str, &str); 6] = [
    ("/api/create", "the server makes no models; start it with a GGUF file"),
    ("/api/push", "the server sends models nowhere"),
    ("/api/blobs/{digest}", "the server takes no files; start it with a GGUF file"),
    ("/api/pull", "the server downloads no models; start it with the model, as in `chaski serve MODEL`"),
    ("/api/delete", "the server deletes no models; delete the file, and start the server with another"),
    ("/api/copy", "the server names no models on request; start it with `--alias NAME`"),
];

/// All paths of this dialect.
pub(super) fn routes(mut router: Router<Arc<App>>) -> Router<Arc<App>> {
    for (path, message) in UNSUPPORTED {
        let refuse = move || async move { ApiError::new(Kind::Unsupported, message) };
        let method = match path {
            "/api/delete" => delete(refuse),
            "/api/blobs/{digest}" => any(refuse),
            _ => post(refuse),
        };
        router = router.route(path, method);
    }
    router
        .route("/api/chat", post(async |app, caller, request| asked(&CHAT, app, caller, request).await))
        .route(
            "/api/generate",
            post(async |app, caller, request| asked(&GENERATE, app, caller, request).await),
        )
        .route("/api/tags", get(tags))
        .route("/api/ps", get(ps))
        .route("/api/show", post(show))
        .route("/api/version", get(async || json(&models::version())))
        .route("/", get(async || with_type("Ollama is running".into(), "text/plain; charset=utf-8")))
}

async fn asked(
    endpoint: &'static Endpoint,
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let path = request.uri().path().to_owned();
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let served = app.model(body["model"].as_str())?;
    match (endpoint.loaded)(&body, &served.facts)? {
        Some(loaded) => Ok(json(&loaded)),
        None => answer(app, &endpoint.dialect, caller, path, body).await,
    }
}

async fn tags(State(app): State<Arc<App>>) -> Response<Body> {
    json(&models::tags(app.models.all().iter().map(|served| &*served.facts)))
}

async fn ps(State(app): State<Arc<App>>) -> Response<Body> {
    json(&models::ps(app.models.all().iter().map(|served| &*served.facts)))
}

async fn show(State(app): State<Arc<App>>, request: Request) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.config.max_body).await?;
    let fields = Fields::of(&body, "")?;
    let name = fields.text("model")?.or(fields.text("name")?);
    let served = app.model(Some(fields.need("model", name)?))?;
    Ok(json(&models::show(&served.facts)))
}
