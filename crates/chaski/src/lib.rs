//! Run large language models from GGUF files on any GPU.
//!
//! ```no_run
//! # async fn example() -> Result<(), chaski::Error> {
//! use chaski::{Engine, GenerateOptions, Source};
//!
//! let mut engine = Engine::builder(Source::path("model.gguf")).context(4096).build().await?;
//! let options = GenerateOptions { max_tokens: Some(200), ..Default::default() };
//! let mut answer = engine.generate("Once upon a time", options)?;
//! while let Some(piece) = answer.next().await? {
//!     print!("{}", piece.text);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Threads and futures
//!
//! No async runtime is needed: natively `pollster::block_on` will do, in a browser the event loop does. Natively all futures
//! are `Send`.
//!
//! - An [`Engine`] works where its futures are polled: natively they block that thread while the device works, so a server
//!   does not poll them on the threads of its runtime. It becomes a [`Handle`] by [`Engine::spawn`]: then a thread of its own
//!   works, no call blocks, and answers are streams for any executor.
//! - Dropping an answer ([`Generation`], [`Conversation`], [`Chat`], [`serve::Answer`]) ends its request within a step, in the
//!   middle of its prompt, too. Its pages stay known as a prefix until others need them.
//! - Dropping the future of [`Generation::next`] or another call on an engine loses nothing: the next call goes on.
//! - A device that is lost is opened again, the model is loaded again, and all open requests go on; only a device of the
//!   program's own ([`EngineBuilder::gpu`]) is an error.

mod builder;
mod chat;
mod device;
mod embed;
mod engine;
mod error;
mod executor;
mod handle;
mod hooks;
mod loader;
mod lora;
mod memory;
mod source;

pub use builder::EngineBuilder;
pub use chaski_models::{
    AdapterError, EmbedOptions, Embedding, Finish, GenerateOptions, ImatrixOptions, ImatrixProgress, Inputs,
    InputsError, KvType, KvTypeError, ModelError, Perplexity, Piece, Pooling, PoolingError, Runner,
    RunnerConfig, SessionError, Speculation, Stats, VectorNorm, imatrix, perplexity,
};
pub use chaski_runtime::gpu::{
    Ablation, AdapterSummary, ExpertReads, FormatRate, Gpu, GpuModel, GpuOptions, LoadTimes, Memory,
    MemoryItem, Peaks, Profile, ProfileRow, Progress, Stage, TuneStep, adapters, adapters_with,
    device_descriptor,
};
pub use chaski_runtime::plan::PlanError;
pub use chaski_runtime::wgpu;
pub use chaski_runtime::{FormatError, RuntimeError};
pub use chaski_text::{
    AddSpecial, Answer, AnswerEvent, AnswerParser, AnswerSyntax, ChatTemplate, ChatTemplates, Constraint,
    ConstraintError, Content, Grammar, LocalTime, Logprobs, Message, Mirostat, ParseSpecial, RenderSpecial,
    SamplerKind, SamplerParams, TemplateOptions, Tokenizer, ToolCall, byte_to_char, strip_added_special,
};
pub use chat::{Chat, ChatEvent, Conversation};
pub use device::{DeviceChoice, DeviceInfo};
pub use engine::{Engine, Generation};
pub use error::Error;
pub use executor::{Driver, ModelExecutor};
pub use handle::Handle;
pub use memory::memory_need;
#[cfg(not(target_arch = "wasm32"))]
pub use source::FileSource;
pub use source::{AnySource, ModelInfo, OpenModel, Reader, Reading, Source};

/// Requests to a [`Handle`], and answers that are streams of events.
pub mod serve {
    pub use chaski_models::serve::{Answer, Event, Load, Refused, Request, ServeError};
}

/// Steps of rows, which a [`Runner`] runs as an [`Executor`](steps::Executor): for measurements, and schedulers of one's own.
pub mod steps {
    pub use chaski_models::serve::{Executor, Outputs, Start};
    pub use chaski_schedule::{Change, Input, Limits, Row, Step, Want};
}

/// What the runtime knows of kernels and feature sets.
pub mod kernels {
    pub use chaski_runtime::kernels::Act;
    pub use chaski_runtime::kernels::{
        Caps, FORMATS, FeatureSet, Format, KV_TYPES, MatVecTune, ProductClass, Tuned, Tuning, Unit,
    };
}

/// The GGUF reader and writer, and the tensor formats.
pub use ggml_format as gguf;

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
