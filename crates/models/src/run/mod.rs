//! Running a model: sequences on a device, generation, batches of answers, perplexity, embeddings.

mod draft;
mod embed;
#[cfg(not(target_arch = "wasm32"))]
mod ends;
#[cfg(target_arch = "wasm32")]
#[path = "no_ends.rs"]
mod ends;
mod eval;
mod executor;
mod gate;
mod generate;
mod heads;
mod imatrix;
mod pages;
mod perplexity;
#[cfg(not(target_arch = "wasm32"))]
mod reasoning;
mod runner;
mod scales;
mod sequence;
mod sequences;
mod session;
mod shift;
mod speculate;
mod state_copies;
mod writer;

pub(crate) use draft::DraftModel;
pub(crate) use embed::Pooled;
pub use embed::{EmbedOptions, Embedding, VectorNorm};
pub use ends::Ends;
pub use generate::{Finish, GenerateOptions, Piece, Stats};
pub use imatrix::{ImatrixOptions, ImatrixProgress, imatrix};
pub use perplexity::{Perplexity, perplexity};
#[cfg(not(target_arch = "wasm32"))]
pub use reasoning::ReasoningBudget;
pub use runner::Runner;
pub(crate) use session::{pack, unpack};
pub(crate) use shift::shifted;
pub use speculate::Speculation;
pub(crate) use writer::Writer;
