//! Models that clients fetch, name and delete.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A step of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullEvent {
    /// State of a file; the first ones of all files come at once.
    File {
        /// Its digest, such as `sha256:` and 64 hex digits.
        digest: String,
        /// Its size in bytes, if it is known.
        size: Option<u64>,
        /// Bytes that are here.
        n_present: u64,
    },
    /// A file is compared with its digest.
    Verifying,
}

/// A model that cannot be fetched, named or deleted.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A name that cannot be used.
    #[error("{0}")]
    Name(String),
    /// There is no such model.
    #[error("{0}")]
    Missing(String),
    /// The hub cannot be reached, or sends something else.
    #[error("{0}")]
    Network(String),
    /// The download was stopped.
    #[error("{0}")]
    Stopped(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Deletes files. It is called once nobody uses the model any more.
pub type Removal = Box<dyn FnOnce() -> Result<(), StoreError> + Send>;

/// Adds models to the offers of a server, and takes them away. The offers are read again afterwards.
pub trait Store: Send + Sync {
    /// Fetches a model, or what is missing of it, and offers it under this name. It blocks, and stops once `cancel` is
    /// set; what came by then is kept.
    ///
    /// # Errors
    /// [`StoreError`].
    fn pull(
        &self,
        name: &str,
        cancel: Arc<AtomicBool>,
        tell: &mut dyn FnMut(PullEvent),
    ) -> Result<(), StoreError>;

    /// Gives the model with this id one more name.
    ///
    /// # Errors
    /// [`StoreError::Name`].
    fn copy(&self, id: &str, name: &str) -> Result<(), StoreError>;

    /// Takes a name of the model with this id away; with its last name the model, which was fetched.
    ///
    /// # Errors
    /// [`StoreError::Name`] for a model that was not fetched, and a name that was not given.
    fn delete(&self, id: &str, name: &str) -> Result<Option<Removal>, StoreError>;
}
