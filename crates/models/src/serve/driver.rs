//! The future that serves.

use std::sync::Arc;

use chaski_runtime::gpu::Memory;
use chaski_schedule::{Limits, Scheduler};
use chaski_text::Tokenizer;
use futures_channel::mpsc::{UnboundedReceiver, unbounded};
use futures_core::Stream;

use super::error::ServeError;
use super::handle::{Command, Handle};
use super::service::Service;
use super::shared::{Shared, Sizes};
use crate::exec::Executor;

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

/// A service over an executor: a handle for callers, and the driver, which must be run. The queue holds at most
/// `max_waiting` requests.
///
/// # Errors
/// [`ServeError::Limits`] if a single request could not fill its context.
pub fn serve<E: Executor>(
    executor: E,
    tokenizer: Arc<Tokenizer>,
    max_waiting: usize,
) -> Result<(Handle, Driver<E>), ServeError> {
    let limits = executor.limits();
    let n_seq = limits.n_seq;
    let sizes = Sizes {
        n_ctx: limits.n_ctx,
        n_seq,
        n_vocab: executor.n_vocab(),
        input: executor.row_input(),
        is_encoder: limits.whole,
        #[cfg(not(target_arch = "wasm32"))]
        session: session_limit(&executor, limits.n_ctx),
        max_open: n_seq.saturating_add(max_waiting),
    };
    // Handles refuse excess requests, so that callers know immediately.
    let scheduler = Scheduler::new(Limits { max_waiting: usize::MAX, ..limits })?;
    let shared = Arc::new(Shared::new(tokenizer, sizes, executor.heads()));
    let (sender, commands) = unbounded();
    let service = Service::new(executor, scheduler, shared.clone());
    Ok((Handle::new(shared.clone(), sender), Driver { service, commands, shared }))
}

/// Upper bound of the bytes of a session with a full context.
#[cfg(not(target_arch = "wasm32"))]
fn session_limit<E: Executor>(executor: &E, n_ctx: usize) -> u64 {
    // Besides the cache: tokens, and a name whose scales take a few bytes each.
    let name = executor.lora(None).map_or(0, |lora| executor.session_name(&lora).len() + 32 * lora.len());
    executor.session_bytes(n_ctx) + (4 * n_ctx + name + 64) as u64
}

impl<E: Executor> Driver<E> {
    /// Serves until all handles and answers are gone, and returns the executor. It waits for requests without polling.
    ///
    /// Dropping the future ends all answers with [`ServeError::Stopped`].
    ///
    /// # Errors
    /// Device errors, if the device is lost for good. All answers and handles get the same error.
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

    /// Accepts queued requests and serves one step; `false` if there are no requests.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub async fn turn(&mut self) -> Result<bool, ServeError> {
        while let Ok(command) = self.commands.try_recv() {
            self.take(command);
        }
        #[cfg(not(target_arch = "wasm32"))]
        if self.service.work_on_slots().await {
            return Ok(true);
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

    /// The executor; open requests end with [`ServeError::Stopped`].
    pub fn into_executor(self) -> E {
        self.service.into_executor()
    }

    /// The executor, for other uses than requests: open requests restart, and prefixes in the KV cache are dropped.
    /// After a failure the driver serves again.
    pub fn take_over(&mut self) -> &mut E {
        self.shared.revive();
        self.service.take_over()
    }

    /// Sets the draft model for requests that speculate ([`GenerateOptions::speculate`](crate::GenerateOptions)); it
    /// needs the same vocabulary. As many requests draft at once without running their tokens again as it has
    /// sequences; [`Speculation::MAX_RUNNING`](crate::Speculation::MAX_RUNNING) are enough. After a device loss, drafts
    /// come from lookup.
    ///
    /// # Errors
    /// [`ModelError::Draft`](crate::ModelError::Draft) if the vocabularies differ in size.
    pub fn set_draft(&mut self, draft: Option<crate::run::Runner>) -> Result<(), crate::error::ModelError> {
        let expected = self.executor().n_vocab() as u32;
        match draft.as_ref().map(crate::run::Runner::n_vocab).filter(|found| *found != expected) {
            Some(found) => Err(crate::error::ModelError::Draft { found, expected }),
            None => {
                self.service.drafter = super::drafter::Drafter::new(draft);
                Ok(())
            }
        }
    }

    /// The most tokens of a step, answers and prompts together, in place of as many as run in a fraction of a second on
    /// this device. Prompts get at least 64 of a step, if its kernels have room for as many.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn set_step_tokens(&mut self, n: Option<usize>) {
        self.service.step_tokens = n;
    }

    /// Memory of the draft model, if there is one.
    pub fn draft_memory(&self) -> Option<Memory> {
        self.service.drafter.memory()
    }

    pub(super) fn service(&mut self) -> &mut Service<E> {
        &mut self.service
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Generate(entry) => self.service.take(*entry),
            Command::Read(reader) => self.service.read(*reader),
            Command::Cancel(id) => self.service.cancel(id),
            #[cfg(not(target_arch = "wasm32"))]
            Command::Slot(job) => self.service.take_job(*job),
            // Nobody may wait for the number any more.
            #[cfg(not(target_arch = "wasm32"))]
            Command::Flush(reply) => drop(reply.send(Ok(self.service.flush()))),
            #[cfg(not(target_arch = "wasm32"))]
            Command::Insert { id, tokens, n_known } => self.service.insert(id, &tokens, n_known),
        }
    }
}
