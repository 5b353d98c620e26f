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
//! No async runtime is needed: natively `pollster::block_on` suffices, in a browser the event loop does. Natively all
//! futures are `Send`.
//!
//! - An [`Engine`] works while its futures are polled: natively they block the thread while the device works, so a
//!   server should not poll them on its runtime's threads. [`Engine::spawn`] turns it into a [`Handle`]: a separate
//!   thread does the work, and answers are streams for any executor. Its calls do not wait for the device; those that
//!   ask for an answer render the template, tokenize and compile grammars on the caller's thread (milliseconds, for a
//!   large schema tens of them), and [`Handle::join`] waits for the end.
//! - Dropping an answer ([`Generation`], [`Conversation`], [`Chat`], [`serve::Answer`]) ends its request within a step,
//!   even in the middle of its prompt. Its pages stay cached as a prefix until others need them.
//! - Dropping the future of [`Generation::next`] or of another call on an engine loses nothing: the next call
//!   continues.
//! - After device loss the device is opened again, the model is loaded again, and all open requests continue. A second
//!   loss before any token ends them, since one of them may be the cause. The loss of a device of the program's own
//!   ([`EngineBuilder::gpu`]) is an error.

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
mod rank;
pub mod source;
mod turns;

pub use builder::EngineBuilder;
pub use chaski_models::{Finish, GenerateOptions, KvType, Piece, Stats};
pub use chaski_runtime::gpu::Progress;
pub use chaski_text::{Grammar, Message, SamplerParams};
pub use chat::{Chat, ChatEvent, Conversation};
pub use device::{DeviceChoice, DeviceInfo};
pub use engine::{Engine, Generation};
pub use error::Error;
pub use handle::Handle;
pub use rank::Ranker;
pub use source::Source;
pub use turns::ChatPrompt;

/// Tokenizers, chat templates, messages, samplers, grammars, and parsers of answers.
pub mod text {
    pub use chaski_text::{
        AddSpecial, Answer, AnswerEvent, AnswerParser, AnswerSyntax, CHATML, CallChoice, CallGrammarError,
        ChatTemplate, ChatTemplates, Constraint, Content, FimTokens, Grammar, LocalTime, Logprobs, Masks,
        Message, Mirostat, OwnGrammar, ParseSpecial, RenderSpecial, Rendered, SamplerKind, SamplerParams,
        TemplateOptions, Tokenizer, ToolCall, Within, builtin_template, builtin_template_names, byte_to_char,
        strip_added_special,
    };
}

/// Parts of [`GenerateOptions`].
pub mod options {
    #[cfg(not(target_arch = "wasm32"))]
    pub use chaski_models::ReasoningBudget;
    pub use chaski_models::{Ends, Speculation};
}

/// Text embeddings: pooling and normalisation.
pub mod embedding {
    pub use chaski_models::serve::{EmbedRequest, Readings};
    pub use chaski_models::{EmbedOptions, Embedding, Pooling, VectorNorm};
}

/// GPU adapters and devices, their memory, and profiles of models on them. The only module with types of `wgpu`.
pub mod gpu {
    #[cfg(not(target_arch = "wasm32"))]
    pub use crate::device::all_gpus;
    pub use crate::device::self_test_of as self_test;
    pub use chaski_runtime::gpu::{
        Ablation, AdapterSummary, DeviceMemory, ExpertReads, FormatRate, Gpu, GpuModel, GpuOptions,
        LoadTimes, Memory, MemoryItem, Peaks, Profile, ProfileRow, Stage, TuneStep, adapter_with, adapters,
        adapters_with, device_descriptor,
    };
    pub use chaski_runtime::wgpu;
}

/// Measurements of models: perplexity, importance matrices, and memory requirements.
pub mod tools {
    pub use crate::memory::{memory_need, memory_need_after_cpu, memory_need_on};
    pub use chaski_models::{ImatrixOptions, ImatrixProgress, Perplexity, imatrix, perplexity};
}

/// The errors contained in [`Error`].
pub mod errors {
    pub use chaski_models::{KvTypeError, LoraError, ModelError, PoolingError, SessionError};
    pub use chaski_runtime::plan::PlanError;
    pub use chaski_runtime::{FormatError, RuntimeError};
    pub use chaski_text::{ConstraintError, TokenizerError};
}

/// Experts that others compute ([`EngineBuilder::experts`]), and computing those of others.
///
/// A layer of experts is cut out of the graph of any family ([`ExpertLayer`](experts::ExpertLayer)). An
/// [`ExpertWorker`](experts::ExpertWorker) on the CPU, or a [`GpuExpertWorker`](experts::GpuExpertWorker), holds some
/// experts and computes an [`ExpertCall`](experts::ExpertCall) with the bits that the model itself would there.
pub mod experts {
    pub use chaski_models::AbsentExperts;
    pub use chaski_runtime::cpu::{ExpertWorker, WorkerConfig};
    #[cfg(not(target_arch = "wasm32"))]
    pub use chaski_runtime::gpu::ExpertWorker as GpuExpertWorker;
    #[cfg(not(target_arch = "wasm32"))]
    pub use chaski_runtime::gpu::{ExpertReplay, ReplayPlan};
    pub use chaski_runtime::graph::{ExpertLayer, ExpertPiece, Graph};
    #[cfg(not(target_arch = "wasm32"))]
    pub use chaski_runtime::plan::{PlanConfig, Streaming};
    pub use chaski_runtime::{ExpertCall, ExpertError, ExpertFuture, Experts, Home, Pair, Tensors};
}

/// LoRAs of an engine: their files, and the scales of requests that say nothing ([`GenerateOptions::lora`]).
pub mod loras {
    pub use crate::lora::LoraInfo;
}

/// Requests to a [`Handle`], and answers as streams of events.
///
/// A prompt may have rows of embeddings in place of tokens, such as an image encoder makes
/// ([`EngineBuilder::input_rows`]):
///
/// ```no_run
/// # fn ask(handle: &chaski::Handle, image: Vec<f32>, n_embd: usize) -> Result<(), Box<dyn std::error::Error>> {
/// use chaski::serve::{Embeddings, Request};
///
/// let image = Embeddings::new(image, n_embd)?;
/// let mut prompt = vec![1, 733];
/// let at = prompt.len();
/// // The tokens below the rows are placeholders.
/// prompt.extend(vec![0; image.len()]);
/// prompt.push(28705);
/// let request = Request { embeddings: vec![(at, image)], ..Request::new(prompt, Default::default()) };
/// let answer = handle.generate_tokens(request)?;
/// # Ok(())
/// # }
/// ```
pub mod serve {
    pub use chaski_models::serve::{
        Answer, Embeddings, EmbeddingsError, Event, Load, LogitsRequest, PromptLogprobsRequest, RankBy,
        RankRequest, Readings, Refused, Request, Salt, ServeError,
    };
    #[cfg(not(target_arch = "wasm32"))]
    pub use chaski_models::serve::{SlotState, StepKind, StepRecord};
}

/// Steps of rows, which a [`Runner`](steps::Runner) runs as an [`Executor`](steps::Executor): for measurements and
/// custom schedulers.
pub mod steps {
    pub use crate::executor::{Driver, ModelExecutor};
    pub use chaski_models::serve::{Executor, Outputs, RowInput, Start};
    pub use chaski_models::{Runner, RunnerConfig, Threads};
    pub use chaski_schedule::{Change, Input, Limits, Row, Step, Want};
}

#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub use chaski_runtime::page_threads;

/// Kernel capabilities, formats and tuning.
pub mod kernels {
    pub use chaski_runtime::kernels::{
        ActivationPrecision, Caps, CoopShape, FORMATS, FeatureSet, Format, KV_TYPES, MatVecTune,
        ProductClass, Tuned, Tuning, Unit,
    };
}

/// The GGUF reader and writer, and the tensor formats.
pub use ggml_format as gguf;

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
