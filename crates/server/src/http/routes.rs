//! The paths.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::Response;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, post};
use tower_http::decompression::RequestDecompressionLayer;

use super::answer::answer;
use super::guard::{Caller, guard, mark};
use super::{body, embeddings, fleet, llama, models, ollama, page, rerank, status};
use crate::app::App;
use crate::dialect::{Dialect, Ping, Wire, anthropic, llama as llama_dialect, openai};
use crate::error::{ApiError, Kind};

/// Server-sent events as OpenAI has them.
const OPENAI: Wire = Wire::Events { ends: true, ping: Ping::Comment };

static CHAT: Dialect = Dialect { ask: openai::chat::ask, wire: OPENAI, prefix: "chatcmpl-" };
static COMPLETIONS: Dialect = Dialect { ask: openai::completions::ask, wire: OPENAI, prefix: "cmpl-" };
static RESPONSES: Dialect = Dialect {
    ask: openai::responses::ask,
    wire: Wire::Events { ends: false, ping: Ping::Comment },
    prefix: "resp_",
};
static COMPLETION: Dialect = Dialect {
    ask: llama_dialect::completion::ask,
    wire: Wire::Events { ends: false, ping: Ping::Comment },
    prefix: "cmpl-",
};

static INFILL: Dialect = Dialect {
    ask: llama_dialect::completion::infill,
    wire: Wire::Events { ends: false, ping: Ping::Comment },
    prefix: "cmpl-",
};

static MESSAGES: Dialect = Dialect {
    ask: anthropic::messages::ask,
    wire: Wire::Events { ends: false, ping: Ping::Event },
    prefix: "msg_",
};

/// Endpoints that answer.
static ANSWERS: [(&str, &Dialect); 10] = [
    ("/v1/chat/completions", &CHAT),
    ("/chat/completions", &CHAT),
    ("/v1/completions", &COMPLETIONS),
    ("/v1/responses", &RESPONSES),
    ("/responses", &RESPONSES),
    ("/v1/messages", &MESSAGES),
    ("/completion", &COMPLETION),
    ("/completions", &COMPLETION),
    ("/generate", &COMPLETION),
    ("/infill", &INFILL),
];

/// An endpoint of this dialect.
fn answers(dialect: &'static Dialect) -> MethodRouter<Arc<App>> {
    post(
        move |State(app): State<Arc<App>>, Extension(caller): Extension<Caller>, request: Request| async move {
            let path = request.uri().path().to_owned();
            let body = body::json(request.into_body(), app.config.max_body).await?;
            answer(app, dialect, caller, path, body).await
        },
    )
}

/// All paths.
pub(crate) fn router(app: Arc<App>) -> Router {
    let mut router = Router::new();
    for (path, dialect) in &ANSWERS {
        router = router.route(path, answers(dialect));
    }
    let router = router
        .route("/health", get(status::health))
        .route("/v1/health", get(status::health))
        .route("/readyz", get(status::health))
        .route("/livez", get(status::live))
        .route("/metrics", get(status::metrics))
        .route("/props", get(status::props))
        .route("/slots", get(status::slots))
        .route("/server_info", get(fleet::server_info))
        .route("/get_server_info", get(fleet::server_info))
        .route("/model_info", get(fleet::model_info))
        .route("/get_model_info", get(fleet::model_info))
        .route("/load", get(fleet::load))
        .route("/v1/loads", get(fleet::loads))
        .route("/admin/drain", post(fleet::drain))
        .route("/v1/models", get(models::list))
        .route("/models", get(models::list))
        .route("/models/load", post(models::load))
        .route("/models/unload", post(models::unload))
        .route("/models/sse", get(models::events))
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/embeddings", post(embeddings::openai))
        .route("/embeddings", post(embeddings::llama))
        .route("/embedding", post(embeddings::llama))
        .route("/api/embed", post(embeddings::ollama))
        .route("/api/embeddings", post(embeddings::old_ollama))
        .route("/v1/rerank", post(rerank::rerank))
        .route("/v2/rerank", post(rerank::rerank))
        .route("/rerank", post(rerank::rerank))
        .route("/reranking", post(rerank::rerank))
        .route("/v1/score", post(rerank::score))
        .route("/score", post(rerank::score))
        .route("/tokenize", post(llama::tokenize))
        .route("/v1/tokenize", post(llama::tokenize))
        .route("/detokenize", post(llama::detokenize))
        .route("/v1/detokenize", post(llama::detokenize))
        .route("/apply-template", post(llama::apply_template))
        .route("/v1/chat/completions/render", post(llama::render))
        .route("/v1/completions/render", post(llama::render_text))
        .route("/v1/chat/completions/input_tokens", post(llama::input_tokens))
        .route("/chat/completions/input_tokens", post(llama::input_tokens))
        .route("/responses/input_tokens", post(llama::count_response))
        .route("/v1/messages/count_tokens", post(llama::count_message))
        .route("/v1/responses/input_tokens", post(llama::count_response))
        .route("/v1/responses/{id}", get(no_response).delete(no_response));
    let mut router = ollama::routes(router).route("/", get(page::root));
    if app.config.page {
        router = page::files(router);
    }
    router
        .route_layer(from_fn(mark))
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .layer(RequestDecompressionLayer::new())
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// Responses are not stored.
async fn no_response(Path(id): Path<String>) -> ApiError {
    ApiError::new(Kind::Path, format!("there is no response `{id}`: the server stores none"))
}

async fn unknown(request: Request) -> Result<Response<Body>, ApiError> {
    Err(ApiError::new(Kind::Path, format!("there is nothing at `{}`", request.uri().path())))
}

async fn other_method(request: Request) -> Result<Response<Body>, ApiError> {
    let (method, path) = (request.method(), request.uri().path());
    Err(ApiError::new(Kind::Method, format!("`{path}` takes no {method}")))
}
