//! Parts of a request's address, whose errors are said in the dialect of the path.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, Kind};

/// The query.
pub(super) struct InQuery<T>(pub(super) T);

/// The part of the path that has a name.
pub(super) struct InPath(pub(super) String);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for InQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let wrong = |error: QueryRejection| ApiError::new(Kind::Invalid, error.body_text());
        Query::from_request_parts(parts, state).await.map(|Query(query)| InQuery(query)).map_err(wrong)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for InPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let wrong = |error: PathRejection| ApiError::new(Kind::Invalid, error.body_text());
        Path::from_request_parts(parts, state).await.map(|Path(part)| InPath(part)).map_err(wrong)
    }
}
