//! A model that a server can load.

use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chaski::{Engine, Source};

use crate::about::About;
use crate::model::ModelOptions;
use crate::names::{is_called, lora_called, stem};

/// The time for which a model stays loaded after its last request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum KeepAlive {
    /// As long as the server runs, also where another model needs its room.
    Always,
    /// This time, and less where another model needs its room.
    For(Duration),
}

impl KeepAlive {
    /// For how long models stay that are loaded when a request asks for them, unless their offer says otherwise.
    pub const DEFAULT: KeepAlive = KeepAlive::For(Duration::from_secs(5 * 60));
}

/// A time that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time such as 5m, 1h30m or 90 (seconds); below 0: always")]
pub struct KeepAliveError;

impl FromStr for KeepAlive {
    type Err = KeepAliveError;

    /// A number of seconds, or a time with units; those below 0 mean always.
    fn from_str(text: &str) -> Result<KeepAlive, KeepAliveError> {
        let (is_below, size) = match text.trim().strip_prefix('-') {
            Some(size) => (true, size),
            None => (false, text.trim()),
        };
        let time = match size.parse::<f64>() {
            Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| KeepAliveError),
            Err(_) => humantime::parse_duration(size).map_err(|_| KeepAliveError),
        };
        Ok(if is_below { time.map(|_| KeepAlive::Always)? } else { KeepAlive::For(time?) })
    }
}

/// A model that cannot be loaded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// There is not enough memory: others make room, if there are any.
    #[error("{0}")]
    Memory(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Takes the part of a model that is loaded, from 0 to 1.
pub type Part = Arc<dyn Fn(f32) + Send + Sync>;

/// Loads a model on the thread that calls it.
pub type Loader = Arc<dyn Fn(Part) -> Result<(Engine, ModelOptions), LoadError> + Send + Sync>;

/// A model that a server can load, and free again.
#[derive(Clone)]
pub struct Offer {
    /// Its name in the API.
    pub id: String,
    /// Further names.
    pub aliases: Vec<String>,
    /// Files of its LoRAs, each of which is a model for requests, with the name of its file.
    pub loras: Vec<String>,
    /// Words that describe it.
    pub tags: Vec<String>,
    /// Its file, for what the server says of it while it is not loaded.
    pub source: Source,
    /// Changes when the file does: a loaded model with another stamp than its offer is loaded again.
    pub stamp: u64,
    /// Seconds since 1970 at which its file changed.
    pub created: u64,
    /// How long it stays loaded.
    pub keep_alive: KeepAlive,
    /// Its program loads it when the server starts ([`Control::load`](crate::Control::load)); until then the server is
    /// not ready.
    pub load_at_start: bool,
    /// Requests that name no model mean it. The first of several counts.
    pub is_default: bool,
    /// How it is loaded.
    pub loader: Loader,
    /// Facts that its file tells, once it has been read.
    pub(crate) about: Arc<OnceLock<Result<About, String>>>,
}

impl Offer {
    /// A model with this name that is loaded when a request asks for it.
    pub fn new(id: impl Into<String>, source: Source, loader: Loader) -> Offer {
        Offer {
            id: id.into(),
            aliases: Vec::new(),
            loras: Vec::new(),
            tags: Vec::new(),
            source,
            stamp: 0,
            created: crate::clock::now(),
            keep_alive: KeepAlive::DEFAULT,
            load_at_start: false,
            is_default: false,
            loader,
            about: Arc::default(),
        }
    }

    /// True if this is one of its names, also with the tag that ollama adds to names without one.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        is_called(&self.id, &self.aliases, name)
    }

    /// The LoRA that a name means.
    pub(crate) fn lora_called(&self, name: &str) -> Option<usize> {
        lora_called(&self.id, &self.aliases, self.loras.iter().map(|file| stem(file)), name)
    }

    /// Name of its file.
    pub(crate) fn file(&self) -> String {
        match &self.source {
            Source::Path(path) => path.display().to_string(),
            Source::Bytes { name, .. } => name.clone(),
            _ => self.id.clone(),
        }
    }

    /// Facts that its file tells. It reads the file's head, once.
    ///
    /// # Errors
    /// A file that is no model.
    pub(crate) fn about(&self) -> Result<&About, &str> {
        let read = || {
            let open = || About::of(&pollster::block_on(self.source.open())?);
            open().map_err(|error: chaski::Error| crate::error::chain(&error))
        };
        self.about.get_or_init(read).as_ref().map_err(String::as_str)
    }
}

impl std::fmt::Debug for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offer").field("id", &self.id).field("source", &self.source).finish_non_exhaustive()
    }
}

/// The name of a model in a file without another.
pub fn model_id(file: &str) -> String {
    stem(file).to_owned()
}
