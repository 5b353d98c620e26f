//! Serving: many requests at once, on any executor, for callers on any thread.
//!
//! [`serve`] makes a [`Handle`] and a [`Driver`] of an [`Executor`]. The handle is what callers have: [`Handle::generate`]
//! takes a [`Request`] and gives an [`Answer`], a stream of [`Event`]s that cancels its request when it is dropped. The
//! driver owns the executor, the scheduler and one entry for each request, and is a future: a thread of its own runs it
//! (`Driver::spawn`), or a task where there are no threads. Nothing here knows of a device, so all of it is tested
//! over an executor of a few lines.

mod driver;
mod entry;
mod error;
mod event;
mod handle;
mod local;
mod pace;
mod platform;
mod service;
mod session;
mod shared;

pub use crate::exec::{Executor, Outputs, Start};
pub use driver::{Driver, serve};
pub use error::{Refused, ServeError};
pub use event::Event;
pub use handle::{Answer, Handle, Request};
pub use local::Generation;
pub use platform::MaybeSend;
pub use session::Sessions;
pub use shared::Load;
