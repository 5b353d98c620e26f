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
    KvType(#[from] KvTypeError),
    /// An adapter, or its scale.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// A way to pool embeddings that there is not.
    #[error(transparent)]
    Pooling(#[from] PoolingError),
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
    Session(#[from] SessionError),
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

/// What is wrong with an adapter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum AdapterError {
    #[error("the file of an adapter cannot be read")]
    Open(#[from] OpenError),
    #[error("the adapter's metadata are wrong")]
    Metadata(#[from] GgufError),
    #[error("`{key}` is {found}, but an adapter has {expected}")]
    Kind { key: &'static str, found: String, expected: &'static str },
    #[error("the adapter is for the architecture `{found}`, the model has `{expected}`")]
    Architecture { found: String, expected: String },
    #[error("the adapter has no tensors")]
    Empty,
    #[error("tensor `{tensor}` of the adapter is neither `.lora_a` nor `.lora_b` of another tensor")]
    Name { tensor: String },
    #[error("tensor `{tensor}` of the adapter is missing")]
    NoHalf { tensor: String },
    #[error("the adapter has tensors for `{tensor}`, which the model lacks")]
    NoBase { tensor: String },
    #[error(
        "tensor `{tensor}` of the adapter: expected shape {expected:?}, found {found:?} (outermost first)"
    )]
    Shape { tensor: String, expected: Vec<u64>, found: Vec<u64> },
    #[error("the adapter has tensors for `{tensor}`, but adapting it is not supported")]
    Unsupported { tensor: String },
    #[error("expected a finite scale for an adapter, found {found}")]
    Scale { found: f32 },
    #[error("expected {expected} scales, one for each adapter, found {found}")]
    Count { expected: usize, found: usize },
}

/// A word that names no type of cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a type of KV cache, K/V or auto, found `{found}` (types: {})", kv_names())]
pub struct KvTypeError {
    /// The word.
    pub found: String,
}

fn kv_names() -> String {
    chaski_runtime::kernels::KV_TYPES.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ")
}

/// A way to pool that there is not, or that nobody named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolingError {
    /// A word that names none.
    #[error("expected a way of pooling (none, mean, cls, last), found `{found}`")]
    Word {
        /// The word.
        found: String,
    },
    /// A number of a file that names none, such as 4 of models that score pairs of texts.
    #[error("`{key}` is {found}, which is not supported (0: none, 1: mean, 2: cls, 3: last)")]
    Number {
        /// The key.
        key: String,
        /// Its value.
        found: u32,
    },
    /// Neither the file nor the caller says.
    #[error("the model does not say how embeddings are pooled (no `{key}`): choose none, mean, cls or last")]
    Unsaid {
        /// The key that the file lacks.
        key: String,
    },
}

/// Why a session cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Bytes that are something else.
    #[error("this is no session, or one of another version of this program")]
    Mark,
    /// Bytes that end too soon, or go on.
    #[error("the session is damaged: {what}")]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// A session of another model, or with another cache.
    #[error("the session is of `{found}`, but this is `{expected}`")]
    Other {
        /// What it is of.
        found: String,
        /// What it would have to be of.
        expected: String,
    },
    /// More tokens than fit.
    #[error("the session has {found} tokens, but the context has {limit}")]
    Long {
        /// Its tokens.
        found: usize,
        /// The context.
        limit: usize,
    },
}
