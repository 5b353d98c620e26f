//! State that handles share with the driver.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use chaski_schedule::{PoolStats, RequestId, Usage};
use chaski_text::Tokenizer;

use super::error::ServeError;

/// The work that a service has.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Requests that wait for a slot.
    pub n_waiting: usize,
    /// Requests that have a slot.
    pub n_running: usize,
    /// Times that a request gave its slot up for others and began again later.
    pub n_preempted: u64,
    /// Times that the device was lost and the requests went on.
    pub n_recovered: u64,
    /// Tokens of a page.
    pub page: usize,
    /// Pages of the KV cache.
    pub pages: PoolStats,
}

impl Load {
    /// Tokens that the KV cache has room for.
    pub fn n_token(&self) -> usize {
        self.pages.n_page * self.page
    }

    /// Tokens in the pages of requests that run, at most.
    pub fn n_used(&self) -> usize {
        self.pages.n_used * self.page
    }

    /// Tokens of prefixes that no request has and later ones can begin with, at most.
    pub fn n_cached(&self) -> usize {
        self.pages.n_cached * self.page
    }
}

/// Sizes that a handle checks requests by.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sizes {
    pub(super) n_ctx: usize,
    pub(super) n_vocab: usize,
    /// Requests that may run or wait.
    pub(super) max_open: usize,
}

pub(super) struct Shared {
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) sizes: Sizes,
    n_request: AtomicU64,
    n_open: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    load: Load,
    failure: Option<ServeError>,
}

impl Shared {
    pub(super) fn new(tokenizer: Arc<Tokenizer>, sizes: Sizes) -> Self {
        let (n_request, n_open) = (AtomicU64::new(0), AtomicUsize::new(0));
        Shared { tokenizer, sizes, n_request, n_open, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing can panic while it is locked.
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn next_id(&self) -> RequestId {
        RequestId(self.n_request.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts a request that is open from now on, if there is room for it.
    pub(super) fn open(self: &Arc<Self>) -> Result<Open, ServeError> {
        let limit = self.sizes.max_open;
        let more = |n: usize| (n < limit).then_some(n + 1);
        match self.n_open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Open(self.clone())),
            Err(found) => Err(ServeError::Busy { found, limit }),
        }
    }

    pub(super) fn load(&self) -> Load {
        let load = self.state().load;
        // Requests that the driver has not seen wait, too.
        let n_waiting = self.n_open.load(Ordering::Relaxed).saturating_sub(load.n_running);
        Load { n_waiting, ..load }
    }

    pub(super) fn set_load(&self, usage: Usage, page: usize, n_recovered: u64) {
        let Usage { n_running, n_preempted, pool: pages, .. } = usage;
        self.state().load = Load { n_waiting: 0, n_running, n_preempted, n_recovered, page, pages };
    }

    /// Notes why no request is served any more.
    pub(super) fn fail(&self, error: ServeError) {
        self.state().failure = Some(error);
    }

    /// Forgets a failure.
    pub(super) fn revive(&self) {
        self.state().failure = None;
    }

    pub(super) fn failure(&self) -> Option<ServeError> {
        self.state().failure.clone()
    }
}

/// A request counts as open while it has this.
pub(super) struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.n_open.fetch_sub(1, Ordering::Relaxed);
    }
}
