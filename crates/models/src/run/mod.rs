//! Running a model: sequences on a device, generation, batches of answers, perplexity, embeddings.

mod device_chain;
mod embed;
mod generate;
mod imatrix;
mod pages;
mod perplexity;
mod runner;
mod scales;
mod sequences;
mod session;
mod shift;
mod speculate;
mod state_copies;
mod writer;

pub(crate) use device_chain::device_chain;
pub use embed::{EmbedOptions, Embedding, Pooling, PoolingError, VectorNorm, embed};
pub use generate::{Finish, GenerateOptions, Piece, Stats};
pub use imatrix::{ImatrixOptions, ImatrixProgress, imatrix};
pub use perplexity::{Perplexity, perplexity};
pub(crate) use runner::Device;
pub use runner::{Inputs, InputsError, KvType, KvTypeError, Runner, RunnerConfig, Target};
pub use session::SessionError;
pub(crate) use session::{pack, unpack};
pub(crate) use shift::shifted;
pub use speculate::Speculation;
pub(crate) use writer::Writer;
