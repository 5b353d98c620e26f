//! The callers' side: submits requests, receives answers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use chaski_runtime::{RowInput, RuntimeError};
use chaski_schedule::{self as schedule, Embeddings, Refused, RequestId, Salt};
use chaski_text::{Sampler, Tokenizer};
use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_core::Stream;
use web_time::Instant;

use super::entry::Entry;
use super::error::ServeError;
use super::event::Event;
use super::reader::Reader;
use super::shared::{Load, Shared};
use crate::error::ModelError;
use crate::run::{GenerateOptions, Stats, Writer};

/// A request for an answer.
#[derive(Clone, Debug)]
pub struct Request {
    /// Tokens of the prompt.
    pub prompt: Vec<u32>,
    /// Rows of embeddings in place of the prompt's tokens from these positions, in order; the tokens there are
    /// placeholders that nothing reads. Prompts share a cached prefix with rows if they have clones of the same object.
    /// A request with embeddings ends when its context is full ([`GenerateOptions::shift`] does not apply).
    pub embeddings: Vec<(usize, Embeddings)>,
    /// Options. The smallest [`GenerateOptions::interval`] of all running requests applies.
    pub options: GenerateOptions,
    /// Of one client's requests, those of higher priority are served first, and preempted last.
    pub priority: i32,
    /// The client: the one with the fewest tokens served is next.
    pub client: u64,
    /// Only requests with the same salt share cached prefixes.
    pub salt: Salt,
    /// The slot in which its state is kept for [`Handle::save_slot`]; `None`: that of its sequence. It changes nothing
    /// else.
    #[cfg(not(target_arch = "wasm32"))]
    pub slot: Option<u32>,
}

impl Request {
    /// A request of default priority.
    pub fn new(prompt: Vec<u32>, options: GenerateOptions) -> Self {
        Request {
            prompt,
            embeddings: Vec::new(),
            options,
            priority: 0,
            client: 0,
            salt: Salt::default(),
            #[cfg(not(target_arch = "wasm32"))]
            slot: None,
        }
    }
}

impl Event {
    fn is_last(&self) -> bool {
        matches!(self, Event::Finished { .. } | Event::Failed { .. })
    }
}

/// A message to the driver.
pub(super) enum Command {
    Generate(Box<Entry>),
    Read(Box<Reader>),
    Cancel(RequestId),
    #[cfg(not(target_arch = "wasm32"))]
    Slot(Box<super::slots::SlotJob>),
    /// Drop the cached prefixes.
    #[cfg(not(target_arch = "wasm32"))]
    Flush(super::slots::Reply<usize>),
    /// Continue an answer with these tokens. So many of its tokens are known to the caller.
    #[cfg(not(target_arch = "wasm32"))]
    Insert {
        id: RequestId,
        tokens: Vec<u32>,
        n_known: usize,
    },
}

/// Accepts requests on any thread. Clones share the service.
#[derive(Clone)]
pub struct Handle {
    pub(super) shared: Arc<Shared>,
    pub(super) commands: UnboundedSender<Command>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("load", &self.load()).finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) fn new(shared: Arc<Shared>, commands: UnboundedSender<Command>) -> Self {
        Handle { shared, commands }
    }

    /// Queues a request. Its grammar is compiled before this returns, so that other requests need not wait for it.
    ///
    /// # Errors
    /// [`ServeError::Refused`] for a prompt that is empty or longer than the context, or embeddings outside it;
    /// [`ServeError::Model`] for unknown tokens, sampling parameters outside their ranges, embeddings that the model
    /// does not take, or an unusable grammar; [`ModelError::Encoder`];
    /// [`ServeError::Busy`] if the queue is full; the device's error once it is lost for good.
    pub fn generate(&self, request: Request) -> Result<Answer, ServeError> {
        #[cfg(not(target_arch = "wasm32"))]
        let slot = request.slot;
        let Request { prompt, embeddings, options, priority, client, salt, .. } = request;
        self.check_decodes()?;
        self.check(&prompt)?;
        let sizes = self.shared.sizes;
        options.sampler.check(sizes.n_vocab).map_err(ModelError::from)?;
        options.ends.check(sizes.n_vocab)?;
        schedule::Request::check_embeddings(&embeddings, prompt.len())?;
        check_input(sizes.input, &embeddings).map_err(ModelError::from)?;
        let open = self.shared.open()?;
        let sampler = Sampler::new(options.sampler.clone(), &self.shared.tokenizer);
        let writer = Writer::new(&self.shared.tokenizer, options)?;
        let id = self.shared.next_id();
        let (sender, events) = unbounded();
        let entry = Entry {
            id,
            prompt,
            embeddings,
            priority,
            client,
            salt,
            #[cfg(not(target_arch = "wasm32"))]
            slot,
            writer,
            sampler,
            events: sender,
            open,
        };
        let command = Command::Generate(Box::new(entry));
        if self.commands.unbounded_send(command).is_err() {
            return Err(self.shared.failure().unwrap_or(ServeError::Stopped));
        }
        let (shared, commands) = (self.shared.clone(), self.commands.clone());
        let (stats, start) = (Stats::default(), Instant::now());
        Ok(Answer { id, events, shared, commands, has_ended: false, stats, start })
    }

    /// Checks that the model continues texts.
    pub(super) fn check_decodes(&self) -> Result<(), ServeError> {
        if self.shared.sizes.is_encoder { Err(ModelError::Encoder.into()) } else { Ok(()) }
    }

    /// Checks that prompts are served, and this one can be.
    pub(super) fn check(&self, prompt: &[u32]) -> Result<(), ServeError> {
        if let Some(error) = self.shared.failure() {
            return Err(error);
        }
        let sizes = self.shared.sizes;
        let (found, limit) = (prompt.len(), sizes.n_ctx);
        if found == 0 {
            return Err(Refused::Empty.into());
        }
        if found > limit {
            return Err(Refused::Context { found, limit }.into());
        }
        match prompt.iter().copied().find(|t| *t as usize >= sizes.n_vocab) {
            Some(token) => Err(ModelError::Token { token, n_vocab: sizes.n_vocab as u32 }.into()),
            None => Ok(()),
        }
    }

    /// Context size in tokens.
    pub fn n_ctx(&self) -> usize {
        self.shared.sizes.n_ctx
    }

    /// Lets so many requests wait from now on; those that wait already stay.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn set_max_waiting(&self, n: usize) {
        self.shared.set_max_waiting(n);
    }

    /// Records of the steps since the last call, the newest of them where there were many.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn take_steps(&self) -> Vec<super::steps::StepRecord> {
        self.shared.take_steps()
    }

    /// Current load.
    pub fn load(&self) -> Load {
        self.shared.load()
    }
}

/// Checks that a model takes embeddings of this width at such positions.
fn check_input(takes: RowInput, placed: &[(usize, Embeddings)]) -> Result<(), RuntimeError> {
    let (n_row, expected) = (placed.iter().map(|(_, rows)| rows.len() as u64).sum(), u64::from(takes.width));
    if n_row > 0 && expected == 0 {
        return Err(RuntimeError::Limit { what: "rows of embeddings", found: n_row, limit: 0 });
    }
    for (_, rows) in placed {
        let found = rows.width() as u64;
        if found != expected {
            return Err(RuntimeError::Shape { what: "values of a row", found, expected });
        }
        takes.check_components(!rows.offsets().is_empty())?;
    }
    Ok(())
}

/// An answer: a stream of events that ends with [`Event::Finished`] or [`Event::Failed`]. Dropping it ends the request
/// within a step, even in the middle of its prompt.
pub struct Answer {
    id: RequestId,
    events: UnboundedReceiver<Event>,
    shared: Arc<Shared>,
    /// Also keeps the driver running.
    commands: UnboundedSender<Command>,
    has_ended: bool,
    stats: Stats,
    start: Instant,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Answer {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Statistics of the events received so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    fn count(&mut self, event: &Event) {
        let (stats, now) = (&mut self.stats, self.start.elapsed());
        match event {
            Event::Started { n_prompt, n_cached, .. } => {
                (stats.n_prompt, stats.n_cached) = (*n_prompt, *n_cached);
                #[cfg(not(target_arch = "wasm32"))]
                {
                    stats.queue = now;
                }
            }
            Event::Piece(piece) if piece.token.is_some() => {
                if stats.n_token == 0 {
                    stats.ttft = now;
                }
                stats.n_token += 1;
                stats.decode = now - stats.ttft;
            }
            Event::Finished { stats: all, .. } => *stats = all.clone(),
            Event::Prompt { .. } | Event::Piece(_) | Event::Failed { .. } => {}
        }
    }

    /// Continues the answer with these tokens, whatever the model would choose, and then as before. They come as events
    /// like others, after at most a step. It stays as it is if the same text came meanwhile, if a grammar forbids it
    /// there, or if its context has no room.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn insert(&self, tokens: Vec<u32>) {
        // A driver that is gone says so by the last event.
        let _ = self.commands.unbounded_send(Command::Insert {
            id: self.id,
            tokens,
            n_known: self.stats.n_token,
        });
    }

    /// Ends it within a step, without a further event. Its statistics stay those of the events received so far.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn cancel(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            // A driver that is gone has nothing to cancel.
            let _ = self.commands.unbounded_send(Command::Cancel(self.id));
        }
    }

    /// The tokenizer of its tokens.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.shared.tokenizer
    }

    /// The next event, if available.
    pub(super) fn try_next(&mut self) -> Option<Event> {
        match Pin::new(self).poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }
}

impl Stream for Answer {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let event = match Pin::new(&mut self.events).poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(event)) => event,
            // The driver is gone.
            Poll::Ready(None) => {
                Event::Failed { error: self.shared.failure().unwrap_or(ServeError::Stopped) }
            }
        };
        self.has_ended = event.is_last();
        self.count(&event);
        Poll::Ready(Some(event))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.has_ended {
            // A driver that is gone has nothing to cancel.
            let _ = self.commands.unbounded_send(Command::Cancel(self.id));
        }
    }
}
