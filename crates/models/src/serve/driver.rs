//! The future that serves.

use std::sync::Arc;

use chaski_schedule::{Limits, Scheduler};
use chaski_text::Tokenizer;
use futures_channel::mpsc::{UnboundedReceiver, unbounded};
use futures_core::Stream;

use super::error::ServeError;
use super::executor::Executor;
use super::handle::{Command, Handle};
use super::service::Service;
use super::shared::{Shared, Sizes};

/// Serves the requests of a [`Handle`] while [`Self::run`] is polled.
pub struct Driver<E> {
    service: Service<E>,
    commands: UnboundedReceiver<Command>,
    shared: Arc<Shared>,
}

impl<E> std::fmt::Debug for Driver<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("load", &self.shared.load()).finish_non_exhaustive()
    }
}

/// A service over an executor: a handle for callers, and the driver, which somebody must run.
///
/// # Errors
/// [`ServeError::Limits`] if a request alone could not go on to the end of its context.
pub fn serve<E: Executor>(executor: E, tokenizer: Arc<Tokenizer>) -> Result<(Handle, Driver<E>), ServeError> {
    let limits = executor.limits();
    let (n_seq, max_waiting) = (limits.n_seq, limits.max_waiting);
    let sizes = Sizes {
        n_ctx: limits.n_ctx,
        n_vocab: executor.n_vocab(),
        max_open: n_seq.saturating_add(max_waiting),
    };
    // Handles refuse what is too much, so that callers need not wait to know.
    let scheduler = Scheduler::new(Limits { max_waiting: usize::MAX, ..limits })?;
    let shared = Arc::new(Shared::new(tokenizer, sizes));
    let (sender, commands) = unbounded();
    let service = Service::new(executor, scheduler, shared.clone());
    Ok((Handle::new(shared.clone(), sender), Driver { service, commands, shared }))
}

impl<E: Executor> Driver<E> {
    /// Serves until all handles and answers are gone, and gives the executor back. It waits for requests without polling.
    ///
    /// Dropping the future ends all answers with [`ServeError::Stopped`].
    ///
    /// # Errors
    /// The device's, once it is lost for good. All answers and handles get the same.
    pub async fn run(mut self) -> Result<E, ServeError> {
        loop {
            while let Ok(command) = self.commands.try_recv() {
                self.take(command);
            }
            if !self.service.is_idle() {
                if let Err(error) = self.service.turn().await {
                    self.shared.fail(error.clone());
                    return Err(error);
                }
                continue;
            }
            let commands = &mut self.commands;
            match std::future::poll_fn(|cx| std::pin::Pin::new(&mut *commands).poll_next(cx)).await {
                Some(command) => self.take(command),
                None => return Ok(self.service.into_executor()),
            }
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Generate(entry) => self.service.take(*entry),
            Command::Cancel(id) => self.service.cancel(id),
        }
    }
}
