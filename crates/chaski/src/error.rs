//! The error that callers see.

use chaski_models::ModelError;
use chaski_models::serve::ServeError;
use chaski_runtime::RuntimeError;
use ggml_format::SourceError;

/// An error of the engine. Display prints one frame; `source()` has the rest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model: its file, its tokens, its template.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The device.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A file that cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An adapter.
    #[error("the adapter `{file}` cannot be used")]
    Lora {
        /// Its file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: Box<ModelError>,
    },
    /// A source of no files.
    #[error("no file was given; name a GGUF file, or all files of a split set")]
    NoFile,
    /// The default model was left out of this build.
    #[error(
        "this build has no default model; name a GGUF file (the cargo feature `default-model` embeds one)"
    )]
    NoDefaultModel,
    /// A request that is refused, or that could not go on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// No thread for a service.
    #[error("the system has no thread for the service")]
    Thread(#[source] std::io::Error),
    /// A chat with a model that has no template.
    #[error("the model has no chat template; give it a plain prompt")]
    NoTemplate,
}

impl Error {
    /// The device is out of memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.runtime(), Some(RuntimeError::OutOfMemory { .. }))
    }

    /// The device is gone; [`crate::Engine::rebuild`] makes a new one.
    pub fn is_device_lost(&self) -> bool {
        matches!(self.runtime(), Some(RuntimeError::DeviceLost { .. }))
    }

    fn runtime(&self) -> Option<&RuntimeError> {
        match self {
            Error::Runtime(e) | Error::Model(ModelError::Runtime(e)) => Some(e),
            _ => None,
        }
    }
}
