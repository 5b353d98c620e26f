//! Running a model: one sequence on a device, generation, perplexity.

mod device_chain;
mod generate;
mod perplexity;
mod runner;

pub use generate::{Finish, GenerateOptions, Generation, Piece, Stats};
pub use perplexity::{Perplexity, perplexity};
pub use runner::{Inputs, KvType, KvTypeError, Runner, RunnerConfig, Target};
