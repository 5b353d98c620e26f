//! The error type of this crate.

use chaski_models::ModelError;
use chaski_models::serve::ServeError;
use chaski_runtime::RuntimeError;
use ggml_format::SourceError;

/// An error of the engine. Display prints one frame; `source()` returns the next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the model: its file, its tokens or its template.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An error of the device.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A file that cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A LoRA that cannot be applied to the model.
    #[error("cannot use the LoRA `{file}`")]
    Lora {
        /// The LoRA's file.
        file: String,
        /// The cause.
        #[source]
        source: Box<ModelError>,
    },
    /// A source without files.
    #[error("no model file given; specify a GGUF file, or all files of a split set")]
    NoFile,
    /// This build has no embedded default model.
    #[error(
        "this build has no default model; specify a GGUF file (the cargo feature `default-model` embeds one)"
    )]
    NoDefaultModel,
    /// A request that is refused, or that could not go on.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// No thread for a service.
    #[error("the system has no thread for the service")]
    Thread(#[source] std::io::Error),
    /// A chat with a model without a chat template.
    #[error("the model has no chat template; use a plain prompt")]
    NoTemplate,
}

impl Error {
    /// True if the device is out of memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.runtime(), Some(RuntimeError::OutOfMemory { .. }))
    }

    /// True if the device is lost; [`crate::Engine::rebuild`] opens a new one.
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
