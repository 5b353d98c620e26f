//! Errors of models.

use chaski_runtime::RuntimeError;
use ggml_format::{GgufError, OpenError, SourceError};

use chaski_text::ConstraintError;
use chaski_text::SampleError;
use chaski_text::TemplateError;
use chaski_text::TokenizerError;

/// An error of a model: its file, its tokens, or the device it runs on.
#[derive(thiserror::Error)]
#[cfg_attr(not(target_arch = "wasm32"), derive(Debug))]
#[non_exhaustive]
pub enum ModelError {
    /// A step without rows.
    #[error("the step has no rows")]
    NoRows,
    /// A read without a step to read.
    #[error("no submitted step remains to be read")]
    NoStep,
    /// A KV cache too small for one context.
    #[error("the KV cache has room for {found} tokens, but a context has {needed}: {} are missing", needed - found)]
    SmallPool {
        /// Tokens of the cache.
        found: u32,
        /// Tokens per context.
        needed: u32,
    },
    /// Memory for a KV cache that is too small for one context.
    #[error("the KV cache has {found} bytes, but a context of {n_ctx} tokens takes {needed}: {} are missing", needed - found)]
    SmallKvMemory {
        /// Bytes of the cache.
        found: u64,
        /// Bytes for one context.
        needed: u64,
        /// Tokens per context.
        n_ctx: u32,
    },
    /// An invalid file.
    #[error("the model file cannot be read")]
    Open(#[from] OpenError),
    /// A type that KV caches do not support.
    #[error(transparent)]
    KvType(#[from] KvTypeError),
    /// An invalid LoRA or scale.
    #[error(transparent)]
    Lora(#[from] LoraError),
    /// An unsupported pooling of embeddings.
    #[error(transparent)]
    Pooling(#[from] PoolingError),
    /// Generation by an encoder.
    #[error(
        "the model is an encoder: it makes embeddings and scores, and no text (`chaski embed`, `chaski rerank`)"
    )]
    Encoder,
    /// An invalid metadata value.
    #[error("the model's metadata are wrong")]
    Metadata(#[from] GgufError),
    /// A read error.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An unsupported architecture.
    #[error("the architecture `{name}` is not supported (supported: {known})")]
    Architecture {
        /// The name in the file.
        name: String,
        /// The supported names.
        known: String,
    },
    /// A missing tensor.
    #[error("tensor `{tensor}` is missing")]
    NoTensor {
        /// Its name.
        tensor: String,
    },
    /// A tensor of the wrong shape.
    #[error("tensor `{tensor}`: expected shape {expected:?}, found {found:?} (outermost first)")]
    Shape {
        /// Its name.
        tensor: String,
        /// Shape according to the metadata.
        expected: Vec<u64>,
        /// Shape in the file.
        found: Vec<u64>,
    },
    /// A tensor of graph parameters with invalid values.
    #[error("tensor `{tensor}` has {found}, but must have {expected}")]
    Values {
        /// Its name.
        tensor: String,
        /// The required values.
        expected: &'static str,
        /// The actual values.
        found: String,
    },
    /// An invalid number in the metadata.
    #[error("`{key}` is {found}, but {expected}")]
    Config {
        /// The key.
        key: String,
        /// The value.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// An unsupported feature.
    #[error("{what} is not supported yet")]
    Unsupported {
        /// The feature.
        what: String,
    },
    /// A session that cannot be restored.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A draft model with another vocabulary.
    #[error("the draft model has {found} tokens, but the model has {expected}")]
    Draft {
        /// Size of its vocabulary.
        found: u32,
        /// Size of the model's vocabulary.
        expected: u32,
    },
    /// An error of the tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// An error of the chat template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// An error of the sampler.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// An error of the constraint.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
    /// An error of the device.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A text that the context has no room for.
    #[error("the text has {found} tokens, but the context has {limit}")]
    Context {
        /// Tokens of the text, with those before it.
        found: u64,
        /// Tokens of the context.
        limit: u64,
    },
    /// A token id outside the vocabulary.
    #[error("token {token} is not in the vocabulary of {n_vocab}")]
    Token {
        /// The id.
        token: u32,
        /// Size of the vocabulary.
        n_vocab: u32,
    },
    /// A CPU-only operation on a GPU.
    #[error("{what} needs a model loaded on the CPU, found one on a GPU")]
    NeedsCpu {
        /// The operation.
        what: &'static str,
    },
    /// A GPU-only operation on the CPU.
    #[error("{what} needs a model on a GPU, found one on the CPU")]
    NeedsGpu {
        /// The operation.
        what: &'static str,
    },
    /// Activations that are not finite, or whose squares overflow.
    #[error("importance of tensor `{tensor}` is no sum of squares")]
    Importance {
        /// The tensor.
        tensor: String,
        /// The cause.
        #[source]
        source: ggml_format::ImatrixError,
    },
    /// A text that is too short.
    #[error("the text has {found} tokens, but {what} needs at least {needed}")]
    ShortText {
        /// Tokens.
        found: usize,
        /// The operation.
        what: &'static str,
        /// Number of tokens it needs.
        needed: usize,
    },
}

/// Modules for browsers are small: there, the message stands for the fields.
#[cfg(target_arch = "wasm32")]
impl std::fmt::Debug for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// An invalid LoRA.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum LoraError {
    #[error("the LoRA file cannot be read")]
    Open(#[from] OpenError),
    #[error("the metadata of the LoRA are invalid")]
    Metadata(#[from] GgufError),
    #[error("`{key}` is {found}, but a LoRA has {expected}")]
    Kind { key: &'static str, found: String, expected: &'static str },
    #[error("the LoRA is for the architecture `{found}`, the model has `{expected}`")]
    Architecture { found: String, expected: String },
    #[error("the LoRA has no tensors")]
    Empty,
    #[error("tensor `{tensor}` of the LoRA is neither `.lora_a` nor `.lora_b` of another tensor")]
    Name { tensor: String },
    #[error("tensor `{tensor}` of the LoRA is missing")]
    NoHalf { tensor: String },
    #[error("the LoRA has tensors for `{tensor}`, which the model lacks")]
    NoBase { tensor: String },
    #[error("tensor `{tensor}` of the LoRA: expected shape {expected:?}, found {found:?} (outermost first)")]
    Shape { tensor: String, expected: Vec<u64>, found: Vec<u64> },
    #[error("the LoRA has tensors for `{tensor}`, but LoRA for it is not supported")]
    Unsupported { tensor: String },
    #[error("expected a finite scale for a LoRA, found {found}")]
    Scale { found: f32 },
    #[error("expected {expected} scales, one per LoRA, found {found}")]
    Count { expected: usize, found: usize },
}

/// An unknown name of a cache type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a type of KV cache, K/V or auto, found `{found}` (types: {})", kv_names())]
pub struct KvTypeError {
    /// The name.
    pub found: String,
}

fn kv_names() -> String {
    chaski_runtime::kernels::KV_TYPES.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ")
}

/// A pooling that is unknown or unspecified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolingError {
    /// An unknown name.
    #[error("expected a way of pooling (none, mean, cls, last, rank), found `{found}`")]
    Word {
        /// The name.
        found: String,
    },
    /// An unknown number in a file.
    #[error("`{key}` is {found}, which is not supported (0: none, 1: mean, 2: cls, 3: last, 4: rank)")]
    Number {
        /// The key.
        key: String,
        /// The value.
        found: u32,
    },
    /// Scores of a model that has none.
    #[error(
        "the model has no scores: its file has neither `cls.weight` nor `cls.output.weight` of a reranker"
    )]
    NoScores,
    /// Neither the file nor the caller specifies it.
    #[error("the model does not say how embeddings are pooled (no `{key}`): choose none, mean, cls or last")]
    Unsaid {
        /// The key missing from the file.
        key: String,
    },
}

/// Reasons for rejecting a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Bytes that are not a session.
    #[error("this is no session, or one of another version of this program")]
    Mark,
    /// Truncated bytes, or trailing ones.
    #[error("the session is damaged: {what}")]
    Damaged {
        /// The defect.
        what: &'static str,
    },
    /// A session of another model, or with another cache.
    #[error("the session is of `{found}`, but this is `{expected}`")]
    Other {
        /// Identity of the session.
        found: String,
        /// Identity of this model.
        expected: String,
    },
    /// Too few free pages of the KV cache.
    #[cfg(not(target_arch = "wasm32"))]
    #[error(
        "the KV cache has no room for the {found} tokens of the session beside those of running requests"
    )]
    Full {
        /// Tokens of the session.
        found: usize,
    },
    /// A session longer than the context.
    #[error("the session has {found} tokens, but the context has {limit}")]
    Long {
        /// Tokens of the session.
        found: usize,
        /// Size of the context.
        limit: usize,
    },
}
