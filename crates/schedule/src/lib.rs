//! Continuous batching: which tokens of which requests run together, and in which pages of the KV cache.
//!
//! A [`Scheduler`] owns waiting and running requests. [`Scheduler::next`] returns a [`Work`]: changes to the page
//! tables, then a [`Step`] of rows that a device runs together. The device's outputs go to [`Scheduler::done`], which
//! returns the events of each request. Several steps can be in flight: a row can take the token that the device chose
//! for its sequence in the previous step ([`Input::Chosen`]), so the device never waits for a readback.
//!
//! Everything here is pure: no device, no clock, no I/O. Text (stop strings, grammars, the end of the answer) is the
//! caller's concern; the caller ends a request with [`Scheduler::end`].

mod embeddings;
mod pool;
mod request;
mod scheduler;
mod step;

pub use embeddings::{Embeddings, EmbeddingsError};
pub use pool::{Found, Pool, PoolStats};
pub use request::{Chooser, Read, Refused, Request, RequestId, Salt, Turn, prefixes};
pub use scheduler::{Budget, Chosen, Event, Limits, LimitsError, Scheduler, Usage, Work};
pub use step::{Change, Input, Row, Step, Want};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
