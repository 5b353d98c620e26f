//! The state that all requests share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use crate::config::{Entry, ServerConfig};
use crate::error::{ApiError, Kind};
use crate::keys::Key;
use crate::metrics::Metrics;
use crate::model::Served;

/// State of a server.
pub(crate) struct App {
    pub(crate) config: ServerConfig,
    pub(crate) models: Models,
    pub(crate) metrics: Metrics,
    /// Keys in force.
    pub(crate) keys: RwLock<Arc<[Key]>>,
    /// Addresses that it is bound to, and names of the machine, as `Host` may have them.
    pub(crate) own_hosts: RwLock<Vec<String>>,
    /// No longer ready: routers should turn away.
    pub(crate) is_draining: AtomicBool,
    /// No new requests are taken.
    pub(crate) is_closed: AtomicBool,
    /// Requests for answers that have not ended.
    pub(crate) n_open: Arc<AtomicUsize>,
}

impl App {
    pub(crate) fn new(config: ServerConfig) -> App {
        App {
            models: Models::default(),
            metrics: Metrics::new(),
            keys: RwLock::new(config.keys.clone().into()),
            own_hosts: RwLock::default(),
            is_draining: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            n_open: Arc::default(),
            config,
        }
    }

    pub(crate) fn log(&self, entry: &Entry) {
        if let Some(log) = &self.config.log {
            log(entry);
        }
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
    /// [`Kind::Draining`] once the server ends.
    pub(crate) fn open(&self) -> Result<OpenRequest, ApiError> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(ApiError::new(Kind::Draining, "the server is shutting down").retry(1));
        }
        // The time without a sign of life begins with work.
        if self.n_open.fetch_add(1, Ordering::Relaxed) == 0 {
            self.metrics.sign();
        }
        Ok(OpenRequest(self.n_open.clone()))
    }

    /// True if requests run, but no token has come for longer than the configuration allows.
    pub(crate) fn is_stalled(&self) -> bool {
        let is_busy = self.models.all().iter().any(|served| served.load().n_running > 0);
        is_busy && self.metrics.silence() > self.config.stall
    }

    /// True if unknown names of models mean the only one.
    fn takes_any(&self) -> bool {
        let default = || self.keys().is_empty() && self.models.all().len() == 1;
        self.config.any_model.unwrap_or_else(default)
    }

    /// The model of a request.
    ///
    /// # Errors
    /// [`Kind::Loading`] before it is loaded; [`Kind::Model`] for an unknown name.
    pub(crate) fn model(&self, name: Option<&str>) -> Result<Arc<Served>, ApiError> {
        let all = self.models.all();
        let Some(first) = all.first() else {
            return Err(ApiError::new(Kind::Loading, "Loading model").retry(1));
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(first.clone()) };
        match all.iter().find(|served| served.facts.is_called(name)) {
            Some(served) => Ok(served.clone()),
            None if self.takes_any() => Ok(first.clone()),
            None => {
                let known: Vec<&str> = all.iter().map(|served| served.facts.id.as_str()).collect();
                let message = format!("the model `{name}` does not exist (known: {})", known.join(", "));
                Err(ApiError { param: Some("model".into()), ..ApiError::new(Kind::Model, message) })
            }
        }
    }
}

/// A request is open while it holds this.
pub(crate) struct OpenRequest(Arc<AtomicUsize>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The loaded models; the first is the default.
#[derive(Default)]
pub(crate) struct Models(RwLock<Vec<Arc<Served>>>);

impl Models {
    pub(crate) fn all(&self) -> Vec<Arc<Served>> {
        self.0.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Takes all models out.
    pub(crate) fn clear(&self) -> Vec<Arc<Served>> {
        std::mem::take(&mut *self.0.write().unwrap_or_else(|e| e.into_inner()))
    }

    pub(crate) fn add(&self, served: Served) {
        self.0.write().unwrap_or_else(|e| e.into_inner()).push(Arc::new(served));
    }
}
