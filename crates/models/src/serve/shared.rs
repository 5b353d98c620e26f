//! State shared by handles and the driver.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use chaski_runtime::RowInput;
use chaski_schedule::{PoolStats, RequestId};
use chaski_text::Tokenizer;

use super::error::ServeError;
use crate::heads::Heads;

/// Load of a service.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Waiting requests.
    pub n_waiting: usize,
    /// Running requests.
    pub n_running: usize,
    /// Number of preemptions.
    pub n_preempted: u64,
    /// Number of device losses that requests survived.
    pub n_recovered: u64,
    /// Number of submitted steps.
    pub n_step: u64,
    /// Number of their rows that choose a token or have logits: answers in a step, summed over the steps. Hidden states
    /// of embeddings do not count.
    pub n_row: u64,
    /// Tokens per page.
    pub page: usize,
    /// Pages of the KV cache.
    pub pages: PoolStats,
}

impl Load {
    /// Capacity of the KV cache in tokens.
    pub fn n_token(&self) -> usize {
        self.pages.n_page * self.page
    }

    /// Upper bound of the tokens in pages of running requests.
    pub fn n_used(&self) -> usize {
        self.pages.n_used * self.page
    }

    /// Upper bound of the cached prefix tokens that no request uses.
    pub fn n_cached(&self) -> usize {
        self.pages.n_cached * self.page
    }
}

/// Limits that handles check requests against.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sizes {
    pub(super) n_ctx: usize,
    /// Sequences at once.
    pub(super) n_seq: usize,
    pub(super) n_vocab: usize,
    /// Inputs other than tokens.
    pub(super) input: RowInput,
    /// The model is an encoder: texts run whole, and are not continued.
    pub(super) is_encoder: bool,
    /// Bytes of the longest session.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) session: u64,
    /// Maximum number of open requests at the start.
    pub(super) max_open: usize,
}

pub(super) struct Shared {
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) sizes: Sizes,
    /// Layers after the pooling of embeddings.
    pub(super) heads: Arc<Heads>,
    n_request: AtomicU64,
    /// Requests that callers have open, and the prompts that they consist of.
    n_open: AtomicUsize,
    /// Maximum number of them.
    #[cfg(not(target_arch = "wasm32"))]
    max_open: AtomicUsize,
    n_prompt: AtomicUsize,
    state: Mutex<State>,
    #[cfg(not(target_arch = "wasm32"))]
    steps: Mutex<super::steps::Steps>,
}

#[derive(Default)]
struct State {
    load: Load,
    failure: Option<ServeError>,
}

impl Shared {
    pub(super) fn new(tokenizer: Arc<Tokenizer>, sizes: Sizes, heads: Arc<Heads>) -> Self {
        let (n_request, n_open, n_prompt) = Default::default();
        Shared {
            tokenizer,
            sizes,
            heads,
            n_request,
            n_open,
            #[cfg(not(target_arch = "wasm32"))]
            max_open: sizes.max_open.into(),
            n_prompt,
            state: Mutex::default(),
            #[cfg(not(target_arch = "wasm32"))]
            steps: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it is locked.
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Keeps the record of a step.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn add_step(&self, record: super::steps::StepRecord) {
        self.steps.lock().unwrap_or_else(|e| e.into_inner()).add(record);
    }

    /// The records since the last call.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn take_steps(&self) -> Vec<super::steps::StepRecord> {
        self.steps.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    pub(super) fn next_id(&self) -> RequestId {
        RequestId(self.n_request.fetch_add(1, Ordering::Relaxed))
    }

    /// Lets so many requests wait from now on.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn set_max_waiting(&self, n: usize) {
        self.max_open.store(self.sizes.n_seq.saturating_add(n), Ordering::Relaxed);
    }

    /// Maximum number of open requests.
    fn max_open(&self) -> usize {
        #[cfg(not(target_arch = "wasm32"))]
        return self.max_open.load(Ordering::Relaxed);
        #[cfg(target_arch = "wasm32")]
        self.sizes.max_open
    }

    /// Registers an open request, if there is room.
    pub(super) fn open(self: &Arc<Self>) -> Result<Open, ServeError> {
        let limit = self.max_open();
        let more = |n: usize| (n < limit).then_some(n + 1);
        match self.n_open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Open::new(Arc::new(Place(self.clone())))),
            Err(found) => Err(ServeError::Busy { found, limit }),
        }
    }

    pub(super) fn load(&self) -> Load {
        let load = self.state().load;
        // Requests that the driver has not seen are waiting, too.
        let n_waiting = self.n_prompt.load(Ordering::Relaxed).saturating_sub(load.n_running);
        Load { n_waiting, ..load }
    }

    pub(super) fn set_load(&self, load: Load) {
        self.state().load = load;
    }

    /// Records why no request is served any more.
    pub(super) fn fail(&self, error: ServeError) {
        self.state().failure = Some(error);
    }

    /// Clears a failure.
    pub(super) fn revive(&self) {
        self.state().failure = None;
    }

    pub(super) fn failure(&self) -> Option<ServeError> {
        self.state().failure.clone()
    }
}

/// Place of a request in the queue.
struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.n_open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A prompt is open while it holds this; clones are for other prompts of the same request.
pub(super) struct Open(Arc<Place>);

impl Open {
    fn new(place: Arc<Place>) -> Self {
        place.0.n_prompt.fetch_add(1, Ordering::Relaxed);
        Open(place)
    }
}

impl Clone for Open {
    fn clone(&self) -> Self {
        Open::new(self.0.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.n_prompt.fetch_sub(1, Ordering::Relaxed);
    }
}
