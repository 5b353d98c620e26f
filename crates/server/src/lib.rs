//! A server: models behind the HTTP APIs of OpenAI, Anthropic, ollama and llama.cpp.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use chaski::{Engine, Source};
//! use chaski_server::{ModelOptions, Server, ServerConfig};
//!
//! let server = Server::bind(ServerConfig::default()).await?;
//! println!("{}", server.urls()[0]);
//! let engine = Engine::builder(Source::path("model.gguf")).sequences(8).build().await?;
//! server.add(engine, ModelOptions { n_seq: 8, ..Default::default() })?;
//! server.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```
//!
//! One request and one type of events serve all dialects: each reads bodies into the former and writes the latter, and
//! knows nothing of sockets. Answers run on the model's own thread ([`chaski::Handle`]); a client that leaves ends its
//! request within a step.

mod about;
mod answers;
mod app;
mod ask;
mod clock;
#[cfg(feature = "otlp")]
mod collector;
mod config;
mod controls;
mod course;
mod dialect;
mod dialects;
mod error;
mod fields;
mod fim;
mod hex;
mod http;
mod ids;
mod kept;
mod keys;
mod limits;
mod loras;
mod metrics;
mod model;
mod models;
mod names;
mod openapi;
mod pace;
mod parts;
mod places;
mod proxies;
mod pulls;
mod queue;
mod salts;
mod sampling;
mod server;
mod spans;
#[cfg(test)]
mod testing;
mod trace;

#[cfg(feature = "otlp")]
pub use collector::{Collector, CollectorError};
pub use config::{Access, Answered, Bounds, Entry, Listen, Log, Prompted, ServerConfig, Tls};
pub use dialects::{DialectOptions, PatternError, ReasoningNames, ReasoningNamesError};
pub use http::tls::Acceptor as TlsAcceptor;
pub use keys::{Key, KeyError, Level};
pub use limits::KeyLimits;
pub use model::{ModelOptions, Variables};
pub use models::{
    KeepAlive, KeepAliveError, LoadError, Loader, Offer, Offers, Part, PullEvent, Removal, Store, StoreError,
    model_id,
};
pub use proxies::{TrustedProxy, TrustedProxyError};
pub use server::{BindError, Control, Server};

/// Runs the example of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
