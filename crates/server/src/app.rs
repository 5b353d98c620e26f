//! The state that all requests share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use tokio::sync::watch;

use crate::config::{Bounds, Entry, ServerConfig};
use crate::controls::Controls;
use crate::error::{ApiError, Kind};
use crate::kept::KeptResponses;
use crate::keys::Key;
use crate::limits::{Counted, Limits};
use crate::metrics::Metrics;
use crate::model::{Facts, Served};
use crate::models::{Lease, Models, Room};
use crate::pulls::Pulls;
use crate::queue::Waiting;
use crate::spans::Spans;

/// Reads files again.
pub(crate) type Renewal = Box<dyn Fn() + Send + Sync>;

/// State of a server.
pub(crate) struct App {
    pub(crate) config: ServerConfig,
    pub(crate) models: Arc<Models>,
    pub(crate) pulls: Pulls,
    pub(crate) controls: Controls,
    /// Responses that requests may go on from.
    pub(crate) responses: KeptResponses,
    pub(crate) metrics: Metrics,
    /// Limits in force.
    bounds: RwLock<Bounds>,
    /// Keys in force.
    pub(crate) keys: RwLock<Arc<[Key]>>,
    /// Addresses that it is bound to, and names of the machine, as `Host` may have them.
    pub(crate) own_hosts: RwLock<Vec<String>>,
    /// No longer ready: routers should turn away.
    pub(crate) is_draining: AtomicBool,
    /// No new requests are taken.
    pub(crate) is_closed: AtomicBool,
    /// True once answers that have not ended are cut.
    cut: watch::Sender<bool>,
    /// Nobody has to notice that the server ends: without requests it does so at once.
    pub(crate) is_hurried: AtomicBool,
    /// Told when the server is to end.
    pub(crate) stop: tokio::sync::Notify,
    /// Each reads the certificates of a socket again.
    pub(crate) renewals: Vec<Renewal>,
    pub(crate) limits: Arc<Limits>,
    /// Requests for answers that have not ended.
    pub(crate) n_open: Arc<AtomicUsize>,
    pub(crate) spans: Spans,
}

impl App {
    /// Inside of a runtime.
    pub(crate) fn new(config: ServerConfig) -> App {
        let log = config.log.clone();
        let note = Box::new(move |text| {
            if let Some(log) = &log {
                log(&Entry::Note(text));
            }
        });
        let room = Room { n_model: config.models_max, n_byte: config.models_bytes };
        let models = Models::new(room, config.autoload, config.offers.clone(), note);
        App {
            models: Arc::new(models),
            pulls: Pulls::default(),
            controls: Controls::default(),
            responses: KeptResponses::new(config.kept_responses),
            metrics: Metrics::new(),
            bounds: RwLock::new(config.bounds),
            keys: RwLock::new(config.keys.clone().into()),
            own_hosts: RwLock::default(),
            is_draining: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            cut: watch::Sender::new(false),
            is_hurried: AtomicBool::new(false),
            stop: tokio::sync::Notify::new(),
            renewals: Vec::new(),
            limits: Arc::new(Limits::new(config.bounds.keys)),
            n_open: Arc::default(),
            spans: Spans::new(&config),
            config,
        }
    }

    pub(crate) fn log(&self, entry: &Entry) {
        if let Some(log) = &self.config.log {
            log(entry);
        }
    }

    /// Limits in force.
    pub(crate) fn bounds(&self) -> Bounds {
        *self.bounds.read().unwrap_or_else(|e| e.into_inner())
    }

    /// Puts other limits in force.
    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        *self.bounds.write().unwrap_or_else(|e| e.into_inner()) = bounds;
        self.limits.set(bounds.keys);
    }

    /// Keys in force.
    pub(crate) fn keys(&self) -> Arc<[Key]> {
        self.keys.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Puts other keys in force.
    pub(crate) fn set_keys(&self, keys: Vec<Key>) {
        *self.keys.write().unwrap_or_else(|e| e.into_inner()) = keys.into();
    }

    /// Counts a request for an answer until it is dropped.
    ///
    /// # Errors
    /// [`Kind::Draining`] once the server ends; [`Kind::Limit`] for one too many of this key.
    pub(crate) fn open(&self, key: Option<u64>) -> Result<OpenRequest, ApiError> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(ApiError::new(Kind::Draining, "the server is shutting down").retry(1));
        }
        let counted = key.map(|key| self.limits.begin(key)).transpose()?;
        self.n_open.fetch_add(1, Ordering::Relaxed);
        Ok(OpenRequest { n_open: self.n_open.clone(), counted })
    }

    /// Ends the answers that have not ended with an error.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// The result of `f`, unless the server ends before.
    ///
    /// # Errors
    /// [`Kind::Draining`], and those of `f`.
    pub(crate) async fn unless_cut<T>(
        &self,
        f: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let mut cut = self.cut.subscribe();
        tokio::select! {
            biased;
            found = f => found,
            _ = cut.wait_for(|cut| *cut) => {
                Err(ApiError::new(Kind::Draining, "the server ended before the answer did").retry(1))
            }
        }
    }

    /// True if requests of a model are open, but nothing has come of them for longer than the configuration allows.
    /// Another model that works is no excuse.
    pub(crate) fn is_stalled(&self) -> bool {
        let stall = self.bounds().stall;
        self.models.loaded().iter().any(|served| served.is_stalled(stall))
    }

    /// True if unknown names of models mean the only one.
    fn takes_any(&self) -> bool {
        let default = || self.keys().is_empty() && self.models.shelf().entries().len() == 1;
        self.config.any_model.unwrap_or_else(default)
    }

    /// Checks the lengths of prompts, or of other texts to run, in tokens.
    ///
    /// # Errors
    /// [`Kind::Context`] for one that is longer than the server takes.
    pub(crate) fn check_prompts(
        &self,
        facts: &Facts,
        lengths: impl Iterator<Item = usize>,
    ) -> Result<(), ApiError> {
        match lengths.max().zip(self.bounds().max_prompt) {
            Some((found, limit)) if found > limit => Err(ApiError::prompt(found, limit, facts.n_ctx)),
            _ => Ok(()),
        }
    }

    /// Counts prompts as waiting for a model, each by its number of tokens, with `n` answers to each.
    ///
    /// # Errors
    /// [`Kind::Full`] if too many tokens wait already.
    pub(crate) fn queue(
        &self,
        served: &Served,
        prompts: impl IntoIterator<Item = usize>,
        n: usize,
    ) -> Result<Vec<Waiting>, ApiError> {
        // Where a place is free, nothing waits for long.
        let load = served.load();
        let is_busy = load.n_running + load.n_waiting >= served.facts.n_seq as usize;
        let limit = self.bounds().max_queued_tokens.filter(|_| is_busy);
        served.queue.add(prompts, n, limit).map_err(|error| served.refusal(error))
    }

    /// The model of a request, which waits while it is loaded.
    ///
    /// # Errors
    /// [`Kind::Loading`] before the server is ready; [`Kind::Model`] for an unknown name; [`Kind::Timeout`] if loading
    /// it takes too long for a request; that it cannot be loaded.
    pub(crate) async fn model(&self, name: Option<&str>) -> Result<Lease, ApiError> {
        let get = self.unless_cut(self.models.get(name, self.takes_any()));
        match self.bounds().request_timeout {
            None => get.await,
            Some(limit) => {
                let late = |_| ApiError::new(Kind::Timeout, "the model was not loaded in time");
                tokio::time::timeout(limit, get).await.map_err(late)?
            }
        }
    }

    /// The id of the model that a request means, loaded or not.
    ///
    /// # Errors
    /// As [`Self::model`] for names.
    pub(crate) async fn model_id(&self, name: Option<&str>) -> Result<String, ApiError> {
        self.models.find(name, self.takes_any()).await
    }
}

/// A request is open while it holds this.
pub(crate) struct OpenRequest {
    n_open: Arc<AtomicUsize>,
    counted: Option<Counted>,
}

impl OpenRequest {
    /// Tokens that it has used.
    pub(crate) fn used(&mut self, n_token: usize) {
        if let Some(counted) = &mut self.counted {
            counted.used(n_token);
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.n_open.fetch_sub(1, Ordering::Relaxed);
    }
}
