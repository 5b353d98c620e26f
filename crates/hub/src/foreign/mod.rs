//! Folders of other programs, which are read only.

mod ollama;

pub use ollama::OllamaModel;
pub(crate) use ollama::{find, list};
