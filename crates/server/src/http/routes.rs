//! The paths.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, Response, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, delete, get, post};
use bytes::Bytes;
use tower_http::decompression::RequestDecompressionLayer;

use super::answer::answer;
use super::endpoint::Endpoint;
use super::guard::{Caller, admins, guard, mark};
use super::respond::{json, with_type};
use super::{body, embeddings, fleet, llama, loras, models, ollama, page, rerank, responses, slots, status};
use crate::app::App;
use crate::dialect::{Dialect, Ping, Wire, anthropic, llama as llama_dialect, openai};
use crate::error::{ApiError, Kind};
use crate::openapi::{self as api, Access};

/// Server-sent events as OpenAI has them.
const OPENAI: Wire = Wire::Events { ends: true, ping: Ping::Comment };

static CHAT: Dialect =
    Dialect { ask: openai::chat::ask, wire: OPENAI, needs_model: false, prefix: "chatcmpl-" };
static COMPLETIONS: Dialect =
    Dialect { ask: openai::completions::ask, wire: OPENAI, needs_model: false, prefix: "cmpl-" };
static COMPLETION: Dialect = Dialect {
    ask: llama_dialect::completion::ask,
    wire: Wire::Events { ends: false, ping: Ping::Comment },
    needs_model: false,
    prefix: "cmpl-",
};

static INFILL: Dialect = Dialect {
    ask: llama_dialect::completion::infill,
    wire: Wire::Events { ends: false, ping: Ping::Comment },
    needs_model: false,
    prefix: "cmpl-",
};

static MESSAGES: Dialect = Dialect {
    ask: anthropic::messages::ask,
    wire: Wire::Events { ends: false, ping: Ping::Event },
    needs_model: true,
    prefix: "msg_",
};

/// An endpoint of this dialect.
fn answers(dialect: &'static Dialect) -> MethodRouter<Arc<App>> {
    post(
        move |State(app): State<Arc<App>>, Extension(caller): Extension<Caller>, request: Request| async move {
            let path = request.uri().path().to_owned();
            let body = body::json(request.into_body(), app.bounds().max_body).await?;
            answer(app, dialect, caller, path, body, None).await
        },
    )
}

/// The handlers of all operations.
fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = vec![
        (&api::CHAT, answers(&CHAT)),
        (&api::COMPLETIONS, answers(&COMPLETIONS)),
        (&api::RESPONSES, post(responses::create)),
        (&api::MESSAGES, answers(&MESSAGES)),
        (&api::COMPLETION, answers(&COMPLETION)),
        (&api::INFILL, answers(&INFILL)),
        (&api::STORED_RESPONSE, get(responses::one)),
        (&api::STORED_RESPONSE_DELETE, delete(responses::forget)),
        (&api::HEALTH, get(status::health)),
        (&api::LIVE, get(status::live)),
        (&api::METRICS, get(status::metrics)),
        (&api::PROPS, get(status::props)),
        (&api::SLOTS, get(status::slots)),
        (&api::SLOT, post(slots::act)),
        (&api::LORAS, get(loras::list)),
        (&api::SET_LORAS, post(loras::set)),
        (&api::SERVER_INFO, get(fleet::server_info)),
        (&api::MODEL_INFO, get(fleet::model_info)),
        (&api::LOAD, get(fleet::load)),
        (&api::LOADS, get(fleet::loads)),
        (&api::DRAIN, post(fleet::drain)),
        (&api::CHAT_CONTROL, post(control)),
        (&api::FLUSH_CACHE, post(fleet::flush_cache)),
        (&api::OPENAPI, get(document)),
        (&api::MODELS, get(models::list)),
        (&api::MODEL, get(models::one)),
        (&api::LOAD_MODEL, post(models::load)),
        (&api::UNLOAD_MODEL, post(models::unload)),
        (&api::MODEL_EVENTS, get(models::events)),
        (&api::EMBEDDINGS, post(embeddings::openai)),
        (&api::LLAMA_EMBEDDINGS, post(embeddings::llama)),
        (&api::OLLAMA_EMBED, post(embeddings::ollama)),
        (&api::OLLAMA_EMBEDDINGS, post(embeddings::old_ollama)),
        (&api::RERANK, post(rerank::rerank)),
        (&api::SCORE, post(rerank::score)),
        (&api::TOKENIZE, post(llama::tokenize)),
        (&api::DETOKENIZE, post(llama::detokenize)),
        (&api::APPLY_TEMPLATE, post(llama::apply_template)),
        (&api::RENDER, post(llama::render)),
        (&api::RENDER_TEXT, post(llama::render_text)),
        (&api::CHAT_TOKENS, post(llama::input_tokens)),
        (&api::RESPONSE_TOKENS, post(responses::count)),
        (&api::MESSAGE_TOKENS, post(llama::count_message)),
        (&api::ROOT, get(page::root)),
    ];
    endpoints.extend(ollama::endpoints());
    endpoints
}

/// All paths.
pub(crate) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new();
    for (operation, mut handler) in endpoints() {
        if operation.access == Access::Admins {
            handler = handler.route_layer(from_fn(admins));
        }
        for path in operation.paths {
            router = router.route(path, handler.clone());
        }
    }
    if app.config.page {
        router = page::files(router);
    }
    router
        .route_layer(from_fn(mark))
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .layer(RequestDecompressionLayer::new())
        .layer(from_fn(packed))
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// The document of the API.
async fn document() -> Response<Body> {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| api::document(api::ALL).to_string().into());
    with_type(TEXT.clone(), "application/json; charset=utf-8")
}

/// Changes an answer of the same client that runs.
async fn control(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let asked = body::json(request.into_body(), app.bounds().max_body).await?;
    let id = openai::chat::controlled(&asked)?;
    let missing = || {
        let message = format!("no answer `{id}` of this client runs");
        ApiError { param: Some("id".into()), ..ApiError::new(Kind::Path, message) }
    };
    app.controls.find(id, caller.client).ok_or_else(missing)?.end_reasoning();
    Ok(json(&serde_json::json!({"success": true})))
}

/// The layer in front of the one that unpacks bodies: it refuses encodings that this one does not know.
async fn packed(request: Request, next: Next) -> Result<Response<Body>, ApiError> {
    let mut encodings = request.headers().get_all(header::CONTENT_ENCODING).iter();
    let is_known = |value: &HeaderValue| matches!(value.as_bytes(), b"gzip" | b"zstd" | b"identity");
    if let Some(other) = encodings.find(|value| !is_known(value)) {
        let other = String::from_utf8_lossy(other.as_bytes());
        let message = format!("bodies in `{other}` cannot be unpacked: gzip, zstd or none");
        return Err(ApiError::new(Kind::Encoding, message));
    }
    Ok(next.run(request).await)
}

async fn unknown(request: Request) -> Result<Response<Body>, ApiError> {
    Err(ApiError::new(Kind::Path, format!("there is nothing at `{}`", request.uri().path())))
}

async fn other_method(request: Request) -> Result<Response<Body>, ApiError> {
    let (method, path) = (request.method(), request.uri().path());
    Err(ApiError::new(Kind::Method, format!("`{path}` takes no {method}")))
}
