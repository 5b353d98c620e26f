//! Running a model: one sequence on a device, generation, perplexity, embeddings.

mod device_chain;
mod embed;
mod generate;
mod imatrix;
mod perplexity;
mod runner;
mod state_copies;

pub use embed::{EmbedOptions, Embedding, Pooling, PoolingError, VectorNorm, embed};
pub use generate::{Finish, GenerateOptions, Generation, Piece, Stats};
pub use imatrix::{ImatrixOptions, ImatrixProgress, imatrix};
pub use perplexity::{Perplexity, perplexity};
pub use runner::{Inputs, KvType, KvTypeError, Runner, RunnerConfig, Target};
