//! Spans of requests for a collector. Without the feature `otlp` there are none, and the same functions do nothing.

#[cfg(feature = "otlp")]
mod exporter;
#[cfg_attr(not(feature = "otlp"), path = "off.rs")]
mod on;

pub(crate) use on::{Asked, Span, Spans};
