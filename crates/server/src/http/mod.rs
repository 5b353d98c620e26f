//! The dialects over HTTP.

#[macro_use]
mod through;

pub(crate) mod answer;
mod begun;
mod body;
mod embeddings;
mod endpoint;
mod extract;
mod fleet;
mod guard;
pub(crate) mod listen;
mod llama;
mod loras;
mod models;
mod ollama;
mod paced;
mod page;
mod pulls;
mod readings;
mod record;
mod rerank;
mod respond;
mod responses;
mod routes;
pub(crate) mod slots;
mod status;
mod tasks;
pub(crate) mod tls;

pub(crate) use routes::router;
