//! Models: from a GGUF file to text.
//!
//! A family (one file under `arch/`, one row of [`ARCHS`]) turns metadata into a graph of the runtime; attention,
//! feed-forward parts and rotation are shared layers. [`Model`] opens a file from any byte source. [`Runner`] is a
//! loaded model with one sequence; [`Generation`] makes text of it. Tokenizers, chat templates and samplers are built
//! from the file's metadata.

mod adapter;
mod answer;
pub mod arch;
mod constraint;
mod derived;
mod error;
mod fingerprint;
mod layers;
mod model;
mod recurrent;
mod run;

mod sampler;
mod template;
mod text;
mod tokenizer;

pub use adapter::{Adapter, AdapterError};
pub use answer::{Answer, AnswerEvent, AnswerParser, AnswerSyntax, ToolCall};
pub use arch::ARCHS;
pub use constraint::{Constraint, ConstraintError, Grammar};
pub use derived::Transposed;
pub use error::ModelError;
pub use model::Model;
pub use run::{
    Batch, BatchEvent, EmbedOptions, Embedding, Finish, GenerateOptions, Generation, ImatrixOptions,
    ImatrixProgress, Inputs, InputsError, KvType, KvTypeError, Perplexity, Piece, Pooling, PoolingError,
    RequestId, Runner, RunnerConfig, SessionError, Speculation, Stats, Suspended, Target, VectorNorm, embed,
    imatrix, perplexity,
};
pub use sampler::{Candidate, Logprobs, Mirostat, SampleError, Sampler, SamplerKind, SamplerParams};
pub use template::{
    CHATML, ChatTemplate, ChatTemplates, Content, LocalTime, Message, TemplateError, TemplateOptions,
    strip_added_special,
};
pub use text::{StopStrings, Stopped, TextStream};
pub use tokenizer::{
    AddSpecial, FimTokens, ParseSpecial, RenderSpecial, TokenKind, Tokenizer, TokenizerError, TokenizerSpec,
    byte_to_char,
};
