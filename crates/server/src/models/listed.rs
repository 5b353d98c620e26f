//! Models as programs are told of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::offer::{KeepAlive, Offer};
use super::shelf::{Entry, State};
use crate::about::About;
use crate::model::{Facts, Served};

/// A model, loaded or not.
pub(crate) struct Listed {
    pub(crate) offer: Arc<Offer>,
    /// Its state, in llama-server's words.
    pub(crate) status: Value,
    /// Facts about it while it is loaded.
    pub(crate) facts: Option<Arc<Facts>>,
    /// Bytes that it takes.
    pub(crate) n_byte: u64,
    /// The time for which it stays if nobody asks for it; `None` for always.
    pub(crate) stays: Option<Duration>,
}

impl Listed {
    pub(crate) fn of(entry: &Entry<Served>) -> Listed {
        let loaded = match &entry.state {
            State::Loaded(loaded) | State::Leaving { loaded, .. } => Some(loaded),
            _ => None,
        };
        let since = Instant::now().saturating_duration_since(entry.used);
        let stays = match entry.keep_alive {
            KeepAlive::Always => None,
            KeepAlive::For(time) if entry.n_user > 0 => Some(time),
            KeepAlive::For(time) => Some(time.saturating_sub(since)),
        };
        Listed {
            offer: entry.offer.clone(),
            status: status(&entry.state),
            facts: loaded.map(|loaded| loaded.model.facts.clone()),
            n_byte: loaded.map_or(0, |loaded| loaded.size.n_byte),
            stays,
        }
    }

    /// Facts that its file tells, which is read for them.
    ///
    /// # Errors
    /// A file that is no model.
    pub(crate) fn about(&self) -> Result<&About, &str> {
        match &self.facts {
            Some(facts) => Ok(&facts.about),
            None => self.offer.about(),
        }
    }

    /// True if there is a way of pooling for embeddings, as far as that is known.
    pub(crate) fn pools(&self) -> bool {
        let about = || self.about().is_ok_and(|about| about.pooling.is_some());
        self.facts.as_ref().map_or_else(about, |facts| facts.pooling.is_some())
    }

    /// True if it makes embeddings only, as far as that is known.
    pub(crate) fn embeds(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.embeds)
    }
}

/// The state of a model.
pub(super) fn status<T>(state: &State<T>) -> Value {
    match state {
        State::Unloaded | State::Ending { .. } => json!({"value": "unloaded"}),
        State::Starting | State::Queued { .. } => json!({"value": "loading"}),
        State::Loading(part) => {
            // Each change of it is an event: no more than a hundred.
            let value = (f64::from(*part) * 100.0).floor() / 100.0;
            let progress = json!({"stages": ["text_model"], "current": "text_model", "value": value});
            json!({"value": "loading", "progress": progress})
        }
        State::Loaded(_) | State::Leaving { .. } => json!({"value": "loaded"}),
        State::Failed { error, .. } => {
            json!({"value": "unloaded", "failed": true, "exit_code": 1, "error": error.message})
        }
    }
}

#[cfg(test)]
impl Listed {
    /// A loaded model that stays.
    pub(crate) fn for_tests(facts: Facts, n_byte: u64) -> Listed {
        let never: super::Loader = Arc::new(|_| Err(super::LoadError::Other("tests load nothing".into())));
        let offer = Offer::new(&*facts.id, chaski::Source::path(&facts.file), never);
        Listed {
            offer: Arc::new(offer),
            status: json!({"value": "loaded"}),
            facts: Some(Arc::new(facts)),
            n_byte,
            stays: None,
        }
    }
}
