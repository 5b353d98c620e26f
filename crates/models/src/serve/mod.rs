//! Serving: many requests at once, on any executor, for callers on any thread.
//!
//! [`serve`] splits an [`Executor`] into a [`Handle`] and a [`Driver`]. Callers hold the handle: [`Handle::generate`]
//! takes a [`Request`] and returns an [`Answer`], a stream of [`Event`]s that cancels its request when dropped;
//! [`Handle::embed`] takes texts and returns [`Readings`], a future of their embeddings. The driver owns the executor,
//! the scheduler and one entry per request, and is a future: it runs on its own thread (`Driver::spawn`), or as a task
//! where there are no threads. Nothing here depends on a device, so all of it is tested over a small fake executor.

mod drafter;
mod driver;
mod embed;
mod entry;
mod error;
mod event;
mod groups;
mod handle;
#[cfg(not(target_arch = "wasm32"))]
mod insert;
mod local;
mod logits;
mod pace;
mod platform;
mod rank;
mod reader;
mod readings;
mod service;
mod session;
mod shared;
#[cfg(not(target_arch = "wasm32"))]
mod slot_calls;
#[cfg(not(target_arch = "wasm32"))]
mod slot_work;
#[cfg(not(target_arch = "wasm32"))]
mod slots;
#[cfg(not(target_arch = "wasm32"))]
mod steps;

pub use crate::exec::{Executor, Outputs, Start};
pub use chaski_runtime::RowInput;
pub use chaski_schedule::{Embeddings, EmbeddingsError, Salt};
pub use driver::{Driver, serve};
pub use embed::EmbedRequest;
pub use error::{Refused, ServeError};
pub use event::Event;
pub use handle::{Answer, Handle, Request};
pub use local::Generation;
pub use logits::{LogitsRequest, PromptLogprobsRequest};
pub use platform::MaybeSend;
pub use rank::{RankBy, RankRequest};
pub use readings::Readings;
pub use shared::Load;
#[cfg(not(target_arch = "wasm32"))]
pub use slots::SlotState;
#[cfg(not(target_arch = "wasm32"))]
pub use steps::{StepKind, StepRecord};
