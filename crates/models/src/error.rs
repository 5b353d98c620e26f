//! Why a model cannot be used.

use chaski_runtime::RuntimeError;
use ggml_format::{GgufError, OpenError, SourceError};

use chaski_text::ConstraintError;
use chaski_text::SampleError;
use chaski_text::TemplateError;
use chaski_text::TokenizerError;

/// An error of a model: its file, its tokens, or the device it runs on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A KV cache that is too small for one context.
    #[error("the KV cache has room for {found} tokens, but a context has {needed}: {} are missing", needed - found)]
    SmallPool {
        /// Tokens of the cache.
        found: u32,
        /// Tokens of a context.
        needed: u32,
    },
    /// The file is not what it should be.
    #[error("the model file cannot be read")]
    Open(#[from] OpenError),
    /// A type that no KV cache has.
    #[error(transparent)]
    KvType(#[from] crate::exec::KvTypeError),
    /// An adapter, or its scale.
    #[error(transparent)]
    Adapter(#[from] crate::adapter::AdapterError),
    /// A way to pool embeddings that there is not.
    #[error(transparent)]
    Pooling(#[from] crate::run::PoolingError),
    /// A value of the metadata.
    #[error("the model's metadata are wrong")]
    Metadata(#[from] GgufError),
    /// Bytes could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An architecture that we do not know.
    #[error("the architecture `{name}` is not supported (supported: {known})")]
    Architecture {
        /// The name in the file.
        name: String,
        /// The names that we know.
        known: String,
    },
    /// A tensor that is not there.
    #[error("tensor `{tensor}` is missing")]
    NoTensor {
        /// Its name.
        tensor: String,
    },
    /// A tensor of another shape.
    #[error("tensor `{tensor}`: expected shape {expected:?}, found {found:?} (outermost first)")]
    Shape {
        /// Its name.
        tensor: String,
        /// What the metadata ask for.
        expected: Vec<u64>,
        /// What the file has.
        found: Vec<u64>,
    },
    /// A tensor that holds numbers of the graph, with others than such.
    #[error("tensor `{tensor}` has {found}, but must have {expected}")]
    Values {
        /// Its name.
        tensor: String,
        /// What it must have.
        expected: &'static str,
        /// What it has.
        found: String,
    },
    /// A number in the metadata that makes no sense.
    #[error("`{key}` is {found}, but {expected}")]
    Config {
        /// The key.
        key: String,
        /// The value.
        found: String,
        /// What it must be.
        expected: String,
    },
    /// The model has something that the engine does not compute yet.
    #[error("{what} is not supported yet")]
    Unsupported {
        /// What.
        what: String,
    },
    /// A session that cannot be restored.
    #[error(transparent)]
    Session(#[from] crate::run::SessionError),
    /// A draft model that has other tokens.
    #[error("the draft model has {found} tokens, but the model has {expected}")]
    Draft {
        /// Tokens of its vocabulary.
        found: u32,
        /// Tokens of the model's.
        expected: u32,
    },
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The chat template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The choice of a token.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// The constraint of the output.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// The device.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A token id that the vocabulary lacks.
    #[error("token {token} is not in the vocabulary of {n_vocab}")]
    Token {
        /// The id.
        token: u32,
        /// Ids there are.
        n_vocab: u32,
    },
    /// What only the processor does, asked of a GPU.
    #[error("{what} needs a model that is loaded on the processor, found one on a gpu")]
    NeedsProcessor {
        /// What was asked.
        what: &'static str,
    },
    /// A measurement of a GPU, asked of the CPU.
    #[error("{what} needs a model on a GPU, found one on the CPU")]
    NeedsGpu {
        /// What was asked.
        what: &'static str,
    },
    /// Inputs that were not finite, or so large that their squares were not.
    #[error("importance of tensor `{tensor}` is no sum of squares")]
    Importance {
        /// The tensor.
        tensor: String,
        /// What is wrong with it.
        #[source]
        source: ggml_format::ImatrixError,
    },
    /// Too little text for what was asked.
    #[error("the text has {found} tokens, but {what} needs at least {needed}")]
    ShortText {
        /// Tokens.
        found: usize,
        /// Who asks.
        what: &'static str,
        /// How many it needs.
        needed: usize,
    },
}
