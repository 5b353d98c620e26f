//! Rows of prompts, for callers: results that are made of them.

use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use chaski_schedule::{Chooser, Read, RequestId, Salt};
use futures_channel::mpsc::UnboundedSender;
use ggml_format::{MaybeSend, MaybeSync};

use super::error::ServeError;
use super::handle::{Command, Handle};
use super::reader::{Reader, Sink};
use super::shared::Shared;

/// Submitted prompts for each sequence: enough that the device never waits for the caller.
const N_AHEAD: usize = 4;

/// Turns rows into a result.
pub(super) trait Fold: MaybeSend + MaybeSync + 'static {
    type Out: MaybeSend + 'static;

    /// Takes the row at a position; rows may begin anew.
    fn row(&mut self, at: usize, values: &[f32]);

    /// The result after the last row.
    fn end(self) -> Self::Out;
}

/// Results so far.
struct Inbox<T> {
    results: Vec<Option<T>>,
    /// Prompts that have begun to run.
    n_started: usize,
    /// The first failure.
    error: Option<ServeError>,
    waker: Waker,
}

fn lock<T>(inbox: &Mutex<Inbox<T>>) -> MutexGuard<'_, Inbox<T>> {
    // No code panics while it is locked.
    inbox.lock().unwrap_or_else(|e| e.into_inner())
}

/// Sends the result of a prompt.
struct Sender<F: Fold> {
    index: usize,
    fold: Option<F>,
    is_started: bool,
    inbox: Arc<Mutex<Inbox<F::Out>>>,
}

impl<F: Fold> Sink for Sender<F> {
    fn started(&mut self) {
        if !std::mem::replace(&mut self.is_started, true) {
            lock(&self.inbox).n_started += 1;
        }
    }

    fn row(&mut self, at: usize, values: &[f32]) {
        if let Some(fold) = &mut self.fold {
            fold.row(at, values);
        }
    }

    fn end(&mut self, result: Result<(), ServeError>) {
        if let Some(fold) = self.fold.take() {
            let mut inbox = lock(&self.inbox);
            match result {
                Ok(()) => inbox.results[self.index] = Some(fold.end()),
                Err(error) => drop(inbox.error.get_or_insert(error)),
            }
            inbox.waker.wake_by_ref();
        }
    }
}

/// The driver may end before the prompt has run.
impl<F: Fold> Drop for Sender<F> {
    fn drop(&mut self) {
        self.end(Err(ServeError::Stopped));
    }
}

/// Results of prompts, in order: a future. Dropping it ends their requests within a step.
///
/// Prompts run together, as many as there are sequences. No more than four for each sequence are submitted at once, so
/// that those of other callers get their turn between them.
pub struct Readings<T> {
    shared: Arc<Shared>,
    /// Also keeps the driver running.
    commands: UnboundedSender<Command>,
    /// Prompts to submit, the last one first.
    left: Vec<Reader>,
    /// Indices of submitted prompts without a result.
    running: Vec<(usize, RequestId)>,
    n_submitted: usize,
    inbox: Arc<Mutex<Inbox<T>>>,
}

impl<T> std::fmt::Debug for Readings<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readings").field("running", &self.running).finish_non_exhaustive()
    }
}

/// Properties that the prompts of a request share.
pub(super) struct Shares {
    pub(super) read: Read,
    pub(super) lora: Option<Vec<f32>>,
    pub(super) priority: i32,
    pub(super) client: u64,
    pub(super) salt: Salt,
}

impl Handle {
    /// Queues prompts that have been checked, whose rows are read from a position on: `(prompt, first, fold)`. They
    /// count as one request.
    ///
    /// # Errors
    /// [`ServeError::Busy`] if the queue is full.
    pub(super) fn read<F: Fold>(
        &self,
        prompts: impl ExactSizeIterator<Item = (Vec<u32>, Range<usize>, F)>,
        shares: Shares,
    ) -> Result<Readings<F::Out>, ServeError> {
        let Shares { read, lora, priority, client, salt } = shares;
        let open = self.shared.open()?;
        let results = (0..prompts.len()).map(|_| None).collect();
        let inbox =
            Arc::new(Mutex::new(Inbox { results, n_started: 0, error: None, waker: Waker::noop().clone() }));
        let reader = |(index, (prompt, rows, fold)): (usize, (_, Range<usize>, F))| {
            let id = self.shared.next_id();
            let sink = Box::new(Sender { index, fold: Some(fold), is_started: false, inbox: inbox.clone() });
            let (chooser, lora, open) =
                (Chooser::Nobody { first: rows.start, end: rows.end, read }, lora.clone(), open.clone());
            Reader { id, prompt, chooser, priority, client, salt, sink, lora, open }
        };
        let mut left: Vec<Reader> = prompts.enumerate().map(reader).collect();
        left.reverse();
        drop(open);
        let (shared, commands, running) = (self.shared.clone(), self.commands.clone(), Vec::new());
        let mut readings = Readings { shared, commands, left, running, n_submitted: 0, inbox };
        readings.submit();
        Ok(readings)
    }
}

impl<T> Readings<T> {
    /// Number of prompts that have begun to run, out of all.
    pub fn n_started(&self) -> usize {
        lock(&self.inbox).n_started
    }

    /// Submits prompts while few wait.
    fn submit(&mut self) {
        while self.running.len() < N_AHEAD * self.shared.sizes.n_seq
            && let Some(reader) = self.left.pop()
        {
            self.running.push((self.n_submitted, reader.id));
            self.n_submitted += 1;
            // The sink tells that the driver is gone.
            let _ = self.commands.unbounded_send(Command::Read(Box::new(reader)));
        }
    }

    /// The results, if all are there.
    pub(super) fn try_ready(&mut self) -> Option<Result<Vec<T>, ServeError>> {
        match Pin::new(self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(results) => Some(results),
            Poll::Pending => None,
        }
    }
}

impl<T> Future for Readings<T> {
    type Output = Result<Vec<T>, ServeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut inbox = lock(&this.inbox);
        if let Some(error) = inbox.error.take() {
            return Poll::Ready(Err(this.shared.failure().unwrap_or(error)));
        }
        this.running.retain(|(index, _)| inbox.results[*index].is_none());
        inbox.waker.clone_from(cx.waker());
        if this.running.is_empty() && this.left.is_empty() {
            return Poll::Ready(Ok(inbox.results.iter_mut().filter_map(Option::take).collect()));
        }
        drop(inbox);
        this.submit();
        Poll::Pending
    }
}

impl<T> Drop for Readings<T> {
    fn drop(&mut self) {
        for (_, id) in &self.running {
            // A driver that is gone has nothing to cancel.
            let _ = self.commands.unbounded_send(Command::Cancel(*id));
        }
    }
}
