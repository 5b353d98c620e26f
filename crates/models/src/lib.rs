//! Models: from a GGUF file to text.
//!
//! A family (one file under `arch/`, one row of [`ARCHS`]) turns metadata into a graph of the runtime; attention,
//! feed-forward parts and RoPE are shared layers. [`Model`] opens a file from any byte source. [`Runner`] is a loaded
//! model; [`serve`] generates text for many requests, with the tokenizers, samplers and grammars of `chaski-text`.

pub mod arch;
mod build;
mod changes;
mod derived;
mod error;
mod exec;
mod fingerprint;
mod heads;
mod layers;
mod lora;
mod model;
mod recurrent;
mod run;
mod separate;
pub mod serve;

pub use arch::ARCHS;
pub use changes::MetadataChanges;
pub use chaski_runtime::cpu::Threads;
pub use derived::Transposed;
pub use error::{KvTypeError, LoraError, ModelError, PoolingError, SessionError};
pub use exec::{AbsentExperts, KvType, RunnerConfig, Target};
pub use heads::{Heads, Pooling, Ranks};
pub use lora::Lora;
pub use model::Model;
#[cfg(not(target_arch = "wasm32"))]
pub use run::ReasoningBudget;
pub use run::{
    EmbedOptions, Embedding, Ends, Finish, GenerateOptions, ImatrixOptions, ImatrixProgress, Perplexity,
    Piece, Runner, Speculation, Stats, VectorNorm, imatrix, perplexity,
};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
