//! The address of a collector of spans.

use std::str::FromStr;

use axum::http::Uri;

/// The address of a collector, such as `http://127.0.0.1:4318`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector(String);

/// An address that is none of a collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of a collector: http://HOST:PORT")]
pub struct CollectorError(String);

impl FromStr for Collector {
    type Err = CollectorError;

    fn from_str(text: &str) -> Result<Collector, CollectorError> {
        let is_it =
            |url: &Uri| url.scheme_str() == Some("http") && url.host().is_some_and(|host| !host.is_empty());
        match text.parse().is_ok_and(|url| is_it(&url)) {
            true => Ok(Collector(text.into())),
            false => Err(CollectorError(text.into())),
        }
    }
}

impl Collector {
    /// As it was given.
    pub(crate) fn address(&self) -> &str {
        &self.0
    }

    /// The address that takes spans.
    pub(crate) fn traces(&self) -> String {
        let trimmed = self.0.trim_end_matches('/');
        let path = if trimmed.ends_with("/v1/traces") { "" } else { "/v1/traces" };
        format!("{trimmed}{path}")
    }
}
