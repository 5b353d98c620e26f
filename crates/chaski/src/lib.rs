//! Run large language models from GGUF files on any GPU.
//!
//! ```no_run
//! # async fn example() -> Result<(), chaski::Error> {
//! use chaski::{Engine, GenerateOptions, Source};
//!
//! let mut engine = Engine::builder(Source::path("model.gguf")).context(4096).build().await?;
//! let mut answer = engine.generate("Once upon a time", GenerateOptions::default())?;
//! while let Some(piece) = answer.next().await? {
//!     print!("{}", piece.text);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Everything is a future and no async runtime is needed: natively `pollster::block_on` will do, in a browser the
//! event loop does.

mod device;
mod embed;
mod engine;
mod error;
mod estimate;
mod lora;
mod source;

pub use chaski_models::{
    AdapterError, AddSpecial, Answer, AnswerEvent, AnswerParser, AnswerSyntax, Batch, BatchEvent,
    ChatTemplate, ChatTemplates, Constraint, ConstraintError, Content, EmbedOptions, Embedding, Finish,
    GenerateOptions, Generation, Grammar, ImatrixOptions, ImatrixProgress, Inputs, InputsError, KvType,
    KvTypeError, LocalTime, Logprobs, Message, Mirostat, ModelError, ParseSpecial, Perplexity, Piece,
    Pooling, PoolingError, RenderSpecial, RequestId, Runner, RunnerConfig, SamplerKind, SamplerParams,
    SessionError, Speculation, Stats, Suspended, TemplateOptions, Tokenizer, ToolCall, VectorNorm,
    byte_to_char, imatrix, perplexity, strip_added_special,
};
pub use chaski_runtime::RuntimeError;
pub use chaski_runtime::gpu::{
    Ablation, AdapterSummary, Choose, ExpertReads, FormatRate, Gpu, GpuModel, GpuOptions, LoadTimes, Memory,
    MemoryItem, Peaks, Profile, ProfileRow, Progress, Stage, Ticket, TuneStep, adapters, adapters_with,
    device_descriptor,
};
pub use chaski_runtime::plan::PlanError;
pub use chaski_runtime::wgpu;
pub use device::{DeviceChoice, DeviceInfo};
pub use engine::{Engine, EngineBuilder};
pub use error::Error;
pub use estimate::{memory_need, memory_need_on_processor};
#[cfg(not(target_arch = "wasm32"))]
pub use source::FileSource;
pub use source::{AnySource, ModelInfo, OpenModel, Reader, Reading, Source};

/// What the runtime knows of kernels and feature sets.
pub mod kernels {
    pub use chaski_runtime::kernels::ops::mul_mat_vec::Act;
    pub use chaski_runtime::kernels::{
        Caps, FORMATS, FeatureSet, Format, KV_TYPES, MatVecTune, ProductClass, Tuned, Tuning, Unit,
    };
}

/// The GGUF reader and writer, and the tensor formats.
pub use ggml_format as gguf;
