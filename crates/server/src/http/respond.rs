//! Responses: values, and errors in the dialect of the path.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::Value;

use crate::error::ApiError;
use crate::openapi::Errors;

/// Shapes of errors.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Shape {
    OpenAi,
    /// OpenAI's with the status as `code`.
    Llama,
    Anthropic,
    Ollama,
}

/// Paths of llama-server.
const LLAMA: [&str; 15] = [
    "/apply-template",
    "/completion",
    "/completions",
    "/detokenize",
    "/embedding",
    "/embeddings",
    "/health",
    "/infill",
    "/lora-adapters",
    "/metrics",
    "/props",
    "/slots",
    "/tokenize",
    "/v1/health",
    "/readyz",
];

fn shape(path: &str) -> Shape {
    let is_below =
        |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match path {
        _ if is_below("/v1/messages") => Shape::Anthropic,
        _ if is_below("/api") => Shape::Ollama,
        _ if LLAMA.into_iter().any(is_below) => Shape::Llama,
        _ => Shape::OpenAi,
    }
}

/// The dialect of errors of a path.
pub(super) fn errors_of(path: &str) -> Errors {
    match shape(path) {
        Shape::OpenAi | Shape::Llama => Errors::OpenAi,
        Shape::Anthropic => Errors::Anthropic,
        Shape::Ollama => Errors::Ollama,
    }
}

/// The header with the name of a request that clients of this path read besides `x-request-id`.
pub(super) fn request_id_header(path: &str) -> Option<HeaderName> {
    (shape(path) == Shape::Anthropic).then(|| HeaderName::from_static("request-id"))
}

/// A value as JSON.
pub(crate) fn json(value: &Value) -> Response<Body> {
    with_type(value.to_string(), "application/json; charset=utf-8")
}

pub(crate) fn with_type(text: String, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An error waits in the response until its path is known.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status(self.kind.row().status);
        response.extensions_mut().insert(self);
        response
    }
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The body of an error, in the dialect of the path.
pub(crate) fn error_body(error: &ApiError, path: &str, request_id: &str) -> Value {
    match shape(path) {
        Shape::OpenAi => error.openai(false),
        Shape::Llama => error.openai(true),
        Shape::Anthropic => error.anthropic(request_id),
        Shape::Ollama => error.ollama(),
    }
}

/// The response to a request that failed, in the dialect of its path.
pub(crate) fn told(mut response: Response<Body>, path: &str, request_id: &str, full: u16) -> Response<Body> {
    let Some(error) = response.extensions_mut().remove::<ApiError>() else { return response };
    let code = match (shape(path), error.kind) {
        (Shape::Anthropic, _) => error.anthropic_status(),
        (_, crate::error::Kind::Full) => full,
        _ => error.kind.row().status,
    };
    let mut told = json(&error_body(&error, path, request_id));
    *told.status_mut() = status(code);
    let headers = told.headers_mut();
    headers.extend(std::mem::take(response.headers_mut()));
    if let Some(seconds) = error.retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if code == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    told
}

/// Headers of streams.
pub(crate) fn stream_headers(headers: &mut HeaderMap, kind: &'static str) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
}
