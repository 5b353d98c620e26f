//! Bodies of requests.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::error::{ApiError, Kind};

/// Silence after which a body counts as lost.
const IDLE: Duration = Duration::from_secs(30);

/// Bytes of a body that is too large, after which the connection ends.
const MOST_DISCARDED: usize = 1 << 30;

/// All bytes of a body.
///
/// # Errors
/// [`Kind::Large`], [`Kind::Timeout`], or [`Kind::Invalid`] for a body that cannot be unpacked.
pub(crate) async fn bytes(mut body: Body, limit: usize) -> Result<Bytes, ApiError> {
    // One that says so is refused before it is here.
    if usize::try_from(body.size_hint().lower()).is_ok_and(|n| n > limit) {
        tokio::spawn(tokio::time::timeout(IDLE, discard(body)));
        return Err(large(limit));
    }
    let mut all = BytesMut::new();
    loop {
        let frame = tokio::time::timeout(IDLE, body.frame()).await;
        let frame =
            frame.map_err(|_| ApiError::new(Kind::Timeout, "the body of the request does not arrive"))?;
        let Some(frame) = frame else { return Ok(all.freeze()) };
        let frame = frame
            .map_err(|error| ApiError::new(Kind::Invalid, format!("the body cannot be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > limit {
            tokio::spawn(tokio::time::timeout(IDLE, discard(body)));
            return Err(large(limit));
        }
        all.extend_from_slice(&data);
    }
}

/// Reads a body that nobody wants: many clients look for a response only once they have sent all of it, and a closed
/// connection is none.
async fn discard(mut body: Body) {
    let mut n_byte = 0;
    while let Some(Ok(frame)) = body.frame().await {
        n_byte += frame.data_ref().map_or(0, Bytes::len);
        if n_byte > MOST_DISCARDED {
            return;
        }
    }
}

fn large(limit: usize) -> ApiError {
    ApiError::new(Kind::Large, format!("the body is larger than {limit} bytes"))
}

/// A body as JSON, whatever its type says.
///
/// # Errors
/// As [`bytes`], and what is wrong with the JSON.
pub(crate) async fn json(body: Body, limit: usize) -> Result<Value, ApiError> {
    parse(&bytes(body, limit).await?)
}

/// Bytes as JSON.
///
/// # Errors
/// What is wrong with the JSON.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    let wrong = |error| ApiError::new(Kind::Invalid, format!("the body is not valid JSON: {error}"));
    serde_json::from_slice(bytes).map_err(wrong)
}

/// The name of the model in a body, which may be absent.
///
/// # Errors
/// A name that is no text.
pub(crate) fn model(body: &Value) -> Result<Option<&str>, ApiError> {
    match &body["model"] {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name)),
        _ => Err(ApiError::field("model", "`model` must be a string")),
    }
}

/// The name of the model, where a body has to have one.
///
/// # Errors
/// A name that is missing, or no string.
pub(crate) fn named_model(body: &Value) -> Result<&str, ApiError> {
    model(body)?.ok_or_else(|| ApiError::field("model", "`model` is missing"))
}

/// Reads a request on a thread that may take its time: templates, tokenizers and grammars do.
///
/// # Errors
/// Those of `f`, and [`Kind::Internal`] if it panics.
pub(crate) async fn read<T: Send + 'static>(
    f: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let failed = |_| Err(ApiError::new(Kind::Internal, "reading the request failed"));
    tokio::task::spawn_blocking(f).await.unwrap_or_else(failed)
}
