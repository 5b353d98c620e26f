//! The error type of this crate.

use chaski_models::serve::{Refused, ServeError};
use chaski_models::{ModelError, PoolingError};
use chaski_runtime::RuntimeError;
#[cfg(feature = "constraint")]
use chaski_text::CallGrammarError;
use chaski_text::{ConstraintError, TokenizerError};
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
    /// A folder that is no model.
    #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
    #[error("cannot open the folder `{folder}` as a model")]
    Checkpoint {
        /// The folder.
        folder: String,
        /// The cause.
        #[source]
        source: Box<chaski_checkpoint::CheckpointError>,
    },
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
    /// A request that was refused or failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// No thread for a service.
    #[error("the system has no thread for the service")]
    Thread(#[source] std::io::Error),
    /// Forced tool calls that the model's notation cannot express.
    #[cfg(feature = "constraint")]
    #[error("the answer cannot be made to call these tools")]
    Calls(#[from] CallGrammarError),
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
        matches!(self.runtime(), Some(RuntimeError::DeviceLost { .. } | RuntimeError::Missing { .. }))
    }

    /// A stable identifier for programs, independent of the message: `bad_file`, `bad_request`, `busy`,
    /// `context_overflow`, `device_lost`, `driver`, `internal`, `no_device`, `no_template`, `out_of_memory`,
    /// `read_failed`, `stopped`, `template`, `unsupported`, `unsupported_arch`, `unsupported_format`.
    pub fn code(&self) -> &'static str {
        if let Some(code) = self.runtime().and_then(code_of_runtime) {
            return code;
        }
        if let Some(code) = self.model().and_then(code_of_model) {
            return code;
        }
        match self {
            Error::NoTemplate => "no_template",
            Error::NoFile | Error::NoDefaultModel => "bad_request",
            #[cfg(feature = "constraint")]
            Error::Calls(_) => "bad_request",
            Error::Source(_) => "read_failed",
            Error::Lora { .. } => "bad_file",
            #[cfg(all(feature = "checkpoints", not(target_arch = "wasm32")))]
            Error::Checkpoint { .. } => "bad_file",
            Error::Serve(ServeError::Refused(Refused::Context { .. } | Refused::Whole { .. })) => {
                "context_overflow"
            }
            Error::Serve(ServeError::Refused(_)) => "bad_request",
            Error::Serve(ServeError::Busy { .. }) => "busy",
            Error::Serve(ServeError::Stopped) => "stopped",
            _ => "internal",
        }
    }

    /// The contained model error.
    pub fn model(&self) -> Option<&ModelError> {
        match self {
            Error::Model(e) => Some(e),
            Error::Lora { source, .. } => Some(source),
            Error::Serve(ServeError::Model(e)) => Some(e),
            _ => None,
        }
    }

    /// The contained device error.
    pub fn runtime(&self) -> Option<&RuntimeError> {
        match (self, self.model()) {
            (Error::Runtime(e), _) | (_, Some(ModelError::Runtime(e))) => Some(e),
            _ => None,
        }
    }
}

fn code_of_runtime(e: &RuntimeError) -> Option<&'static str> {
    Some(match e {
        RuntimeError::NoAdapter { .. }
        | RuntimeError::NoSuchAdapter { .. }
        | RuntimeError::Software { .. }
        | RuntimeError::Open { .. } => "no_device",
        RuntimeError::OutOfMemory { .. } => "out_of_memory",
        RuntimeError::DeviceLost { .. } | RuntimeError::Missing { .. } => "device_lost",
        RuntimeError::Limit { what: "tokens of the sequence", .. } => "context_overflow",
        RuntimeError::Limit { .. } | RuntimeError::Shape { .. } => "bad_request",
        RuntimeError::SelfTest { .. } | RuntimeError::Refused { .. } | RuntimeError::WrongResult { .. } => {
            "driver"
        }
        RuntimeError::NoDequantizer { .. } | RuntimeError::Format(_) | RuntimeError::Plan(_) => {
            "unsupported_format"
        }
        RuntimeError::Tensor { .. } => "read_failed",
        _ => return None,
    })
}

fn code_of_model(e: &ModelError) -> Option<&'static str> {
    Some(match e {
        ModelError::Architecture { .. } => "unsupported_arch",
        ModelError::Unsupported { .. }
        | ModelError::Encoder
        | ModelError::Pooling(PoolingError::NoScores)
        | ModelError::Constraint(ConstraintError::FeatureDisabled) => "unsupported",
        ModelError::Template(_) => "template",
        ModelError::Context { .. } | ModelError::Tokenizer(TokenizerError::TooLong { .. }) => {
            "context_overflow"
        }
        ModelError::KvType(_)
        | ModelError::Constraint(_)
        | ModelError::Lora(_)
        | ModelError::Draft { .. }
        | ModelError::Token { .. }
        | ModelError::ShortText { .. }
        | ModelError::Session(_)
        | ModelError::Pooling(_)
        | ModelError::SmallPool { .. }
        | ModelError::NoRows
        | ModelError::NoStep
        | ModelError::Sample(_) => "bad_request",
        ModelError::Source(_) => "read_failed",
        ModelError::Open(_)
        | ModelError::Metadata(_)
        | ModelError::NoTensor { .. }
        | ModelError::Shape { .. }
        | ModelError::Values { .. }
        | ModelError::Config { .. }
        | ModelError::Tokenizer(_) => "bad_file",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn codes_do_not_depend_on_the_way_of_an_error() {
        let lost = || RuntimeError::DeviceLost { reason: "unplugged".into() };
        let of_model = || ModelError::from(lost());
        for e in
            [Error::Runtime(lost()), of_model().into(), Error::Serve(ServeError::Model(Arc::new(of_model())))]
        {
            assert_eq!((e.code(), e.is_device_lost(), e.is_out_of_memory()), ("device_lost", true, false));
        }
        let long = ServeError::Refused(Refused::Context { found: 9, limit: 8 });
        assert_eq!(Error::Serve(long).code(), "context_overflow");
        let long = ModelError::from(TokenizerError::TooLong { at_least: 9, limit: 8 });
        assert_eq!(Error::Model(long).code(), "context_overflow");
        let full = RuntimeError::Limit { what: "tokens of the sequence", found: 9, limit: 8 };
        assert_eq!(Error::Runtime(full).code(), "context_overflow");
        assert_eq!(Error::Model(ModelError::Context { found: 9, limit: 8 }).code(), "context_overflow");
        assert_eq!(Error::Serve(ServeError::Busy { found: 3, limit: 2 }).code(), "busy");
        assert_eq!(Error::NoTemplate.code(), "no_template");
    }
}
