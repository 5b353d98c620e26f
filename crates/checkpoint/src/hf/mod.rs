//! Checkpoints of Hugging Face: config.json, safetensors, tokenizer.
//!
//! [`HF_ARCHS`] has a row for each class of transformers: keys and tensors of a GGUF file, and how they are made.
//! [`open`] reads headers and small files, and gives a file whose tensors are made when they are read.

mod class;
mod classes;
mod config;
mod keys;
mod layouts;
mod open;
mod part;
mod plan;
mod rules;
mod scheme;
mod source;
mod table;
mod tensors;
mod weights;

pub use class::{HfArch, Proof};
pub use config::{Config, ConfigError};
pub use keys::Key;
pub use layouts::LayoutError;
pub(crate) use open::{HF_QUANT_CONFIG, model, n_vocab, prepare, set_types};
pub use open::{HfError, OpenOptions, Opened, open};
pub use part::{Part, PartError};
pub use plan::PlanError;
pub use rules::{Kind, Rule, When};
pub use scheme::SchemeError;
pub(crate) use source::WeightSource;
pub use table::{HF_ARCHS, class};
pub use tensors::TensorsError;
pub(crate) use tensors::weight_files;
pub use weights::WeightsError;
