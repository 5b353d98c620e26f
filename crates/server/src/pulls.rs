//! Downloads that clients ask for. Those of one name share one, which ends with its last client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;

use crate::error::{ApiError, Kind};
use crate::models::{Models, PullEvent, Store, StoreError};

/// A file of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) digest: String,
    pub(crate) size: Option<u64>,
    pub(crate) n_present: u64,
}

/// The state of a download.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// The files, once they are known.
    pub(crate) files: Vec<File>,
    pub(crate) is_verifying: bool,
    /// All files are here.
    pub(crate) is_whole: bool,
    pub(crate) ended: Option<Result<(), ApiError>>,
}

impl Progress {
    /// Takes note of a step.
    pub(crate) fn take(&mut self, event: PullEvent) {
        match event {
            PullEvent::Verifying => self.is_verifying = true,
            PullEvent::File { digest, size, n_present } => {
                let file = File { digest, size, n_present };
                match self.files.iter_mut().find(|known| known.digest == file.digest) {
                    Some(known) => *known = file,
                    None => self.files.push(file),
                }
            }
        }
    }
}

/// A download. It stops once nobody holds it.
pub(crate) struct Pull {
    progress: watch::Receiver<Progress>,
    cancel: Arc<AtomicBool>,
}

impl Pull {
    /// Its state, and changes of it.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }
}

impl Drop for Pull {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

/// The downloads of a server, by name.
#[derive(Default)]
pub(crate) struct Pulls {
    running: Mutex<HashMap<String, Weak<Pull>>>,
    has_ended: AtomicBool,
}

impl Pulls {
    fn running(&self) -> MutexGuard<'_, HashMap<String, Weak<Pull>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The download of a model, which begins unless it runs.
    ///
    /// # Errors
    /// [`Kind::Draining`] once the server ends; [`Kind::Internal`] if the system has no thread.
    pub(crate) fn of(
        &self,
        name: &str,
        store: &Arc<dyn Store>,
        models: &Arc<Models>,
    ) -> Result<Arc<Pull>, ApiError> {
        let mut running = self.running();
        if self.has_ended.load(Ordering::Relaxed) {
            return Err(ApiError::new(Kind::Draining, "the server is shutting down").retry(1));
        }
        running.retain(|_, pull| pull.strong_count() > 0);
        if let Some(pull) = running.get(name).and_then(Weak::upgrade).filter(|pull| pull.runs()) {
            return Ok(pull);
        }
        let (sender, progress) = watch::channel(Progress::default());
        let pull = Arc::new(Pull { progress, cancel: Arc::default() });
        let (cancel, store, models, of_thread) =
            (pull.cancel.clone(), store.clone(), models.clone(), name.to_owned());
        let work = move || {
            let mut tell = |event| sender.send_modify(|progress| progress.take(event));
            let result = store.pull(&of_thread, cancel, &mut tell).map_err(ApiError::from);
            if result.is_ok() {
                sender.send_modify(|progress| progress.is_whole = true);
                models.refresh();
            }
            sender.send_modify(|progress| progress.ended = Some(result));
        };
        let failed = |error| ApiError::new(Kind::Internal, format!("no model is fetched: {error}"));
        std::thread::Builder::new().name("pull".into()).spawn(work).map_err(failed)?;
        running.insert(name.to_owned(), Arc::downgrade(&pull));
        Ok(pull)
    }

    /// Stops all downloads, and begins none from now on.
    pub(crate) fn end(&self) {
        let running = self.running();
        self.has_ended.store(true, Ordering::Relaxed);
        let pulls = running.values().filter_map(Weak::upgrade);
        pulls.for_each(|pull| pull.cancel.store(true, Ordering::Relaxed));
    }
}

impl Pull {
    /// True if it has not ended.
    fn runs(&self) -> bool {
        self.progress.borrow().ended.is_none() && self.progress.has_changed().is_ok()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        let kind = match error {
            StoreError::Name(_) => return ApiError::field("model", error.to_string()),
            StoreError::Missing(_) => Kind::Model,
            StoreError::Network(_) => Kind::Upstream,
            StoreError::Stopped(_) => Kind::Draining,
            StoreError::Other(_) => Kind::Internal,
        };
        ApiError::new(kind, error.to_string())
    }
}
