//! Responses: values, and errors in the dialect of the path.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::Value;

use crate::error::ApiError;
use crate::model::Called;
use crate::openapi::{Errors, errors_of};

/// The header with the name of a request that clients of this path read besides `x-request-id`.
pub(super) fn request_id_header(path: &str) -> Option<HeaderName> {
    (errors_of(path) == Errors::Anthropic).then(|| HeaderName::from_static("request-id"))
}

/// A value as JSON.
pub(crate) fn json(value: &Value) -> Response<Body> {
    with_type(value.to_string(), "application/json; charset=utf-8")
}

/// A body of this type.
pub(crate) fn with_type(body: impl Into<Body>, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(body.into());
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
    match errors_of(path) {
        Errors::OpenAi => error.openai(false),
        Errors::Llama => error.openai(true),
        Errors::Anthropic => error.anthropic(request_id),
        Errors::Ollama => error.ollama(),
    }
}

/// The response to a request that failed, in the dialect of its path.
pub(crate) fn told(mut response: Response<Body>, path: &str, request_id: &str, full: u16) -> Response<Body> {
    let Some(error) = response.extensions_mut().remove::<ApiError>() else { return response };
    let code = match (errors_of(path), error.kind) {
        (Errors::Anthropic, _) => error.anthropic_status(),
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

/// The name of the model that answers a request for another one.
pub(super) fn model_header(headers: &mut HeaderMap, called: Called, id: &str) {
    if called == Called::Other
        && let Ok(name) = HeaderValue::from_str(id)
    {
        headers.insert(HeaderName::from_static("x-chaski-model"), name);
    }
}

/// Headers of streams.
pub(crate) fn stream_headers(headers: &mut HeaderMap, kind: &'static str) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
}
