//! Checkpoints of Hugging Face: config.json, safetensors, tokenizer.
//!
//! [`HF_ARCHS`] has a row for each class of transformers: keys and tensors of a GGUF file, and how they are made.
//! [`open`] reads headers and small files, and gives a file whose tensors are made when they are read.

mod class;
mod classes;
mod config;
mod keys;
mod open;
mod part;
mod plan;
mod rules;
mod scheme;
mod source;
mod weights;

pub use class::{HfArch, Proof};
pub use config::{Config, ConfigError};
pub use keys::Key;
pub use open::{HfError, OpenOptions, Opened, open};
pub(crate) use open::{model, n_vocab, prepare, set_types};
pub use part::{Part, PartError};
pub use plan::PlanError;
pub use rules::{Kind, Rule, When};
pub use scheme::SchemeError;
pub(crate) use source::WeightSource;
pub use weights::WeightsError;

/// All classes, by family.
pub static HF_ARCHS: &[&[HfArch]] = &[
    classes::llama::CLASSES,
    classes::gemma::CLASSES,
    classes::qwen_hybrid::CLASSES,
    classes::deepseek::CLASSES,
    classes::recurrent::CLASSES,
    classes::dense::CLASSES,
];

/// The row of a class.
pub fn class(name: &str) -> Option<&'static HfArch> {
    HF_ARCHS.iter().copied().flatten().find(|arch| arch.class == name)
}
