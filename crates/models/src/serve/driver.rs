//! The future that serves.

use std::sync::Arc;

use chaski_schedule::{Limits, Scheduler};
use chaski_text::Tokenizer;
use futures_channel::mpsc::{UnboundedReceiver, unbounded};
use futures_core::Stream;

use super::error::ServeError;
use super::handle::{Command, Handle};
use super::service::Service;
use super::shared::{Shared, Sizes};
use crate::error::ModelError;
use crate::exec::Executor;
use crate::run::Runner;

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

/// A service over an executor: a handle for callers, and the driver, which somebody must run. At most `max_waiting` requests
/// wait for a slot.
///
/// # Errors
/// [`ServeError::Limits`] if a request alone could not go on to the end of its context.
pub fn serve<E: Executor>(
    executor: E,
    tokenizer: Arc<Tokenizer>,
    max_waiting: usize,
) -> Result<(Handle, Driver<E>), ServeError> {
    let limits = executor.limits();
    let n_seq = limits.n_seq;
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
            if self.turn().await? {
                continue;
            }
            let commands = &mut self.commands;
            match std::future::poll_fn(|cx| std::pin::Pin::new(&mut *commands).poll_next(cx)).await {
                Some(command) => self.take(command),
                None => return Ok(self.service.into_executor()),
            }
        }
    }

    /// Takes the requests that have come, and serves one step of those that there are; `false` if there are none.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub async fn turn(&mut self) -> Result<bool, ServeError> {
        while let Ok(command) = self.commands.try_recv() {
            self.take(command);
        }
        if self.service.is_idle() {
            return Ok(false);
        }
        match self.service.turn().await {
            Ok(()) => Ok(true),
            Err(error) => {
                self.shared.fail(error.clone());
                Err(error)
            }
        }
    }

    /// The executor.
    pub fn executor(&self) -> &E {
        self.service.executor()
    }

    /// The executor; requests that are open end with [`ServeError::Stopped`].
    pub fn into_executor(self) -> E {
        self.service.into_executor()
    }

    /// The executor, for another use than requests: those that are open begin again, and prefixes in the KV cache are
    /// forgotten. After a failure the driver serves again.
    pub fn take_over(&mut self) -> &mut E {
        self.shared.revive();
        self.service.take_over()
    }

    /// Guesses the next tokens of requests that speculate ([`GenerateOptions::speculate`](crate::GenerateOptions)) by a
    /// smaller model with the same vocabulary, from now on.
    ///
    /// # Errors
    /// [`ModelError::Draft`] if the vocabularies differ in size.
    pub fn set_draft(&mut self, draft: Option<Runner>) -> Result<(), ModelError> {
        let expected = self.service.executor().n_vocab() as u32;
        match draft.as_ref().map(Runner::n_vocab).filter(|found| *found != expected) {
            Some(found) => Err(ModelError::Draft { found, expected }),
            None => {
                self.service.draft = draft;
                Ok(())
            }
        }
    }

    pub(super) fn service(&mut self) -> &mut Service<E> {
        &mut self.service
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Generate(entry) => self.service.take(*entry),
            Command::Cancel(id) => self.service.cancel(id),
        }
    }
}
