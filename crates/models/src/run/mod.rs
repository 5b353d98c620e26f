//! Running a model: one sequence on a device, generation, perplexity.

mod device_chain;
mod generate;
mod imatrix;
mod pages;
mod perplexity;
mod runner;
mod sequences;
mod state_copies;

pub use generate::{Finish, GenerateOptions, Generation, Piece, Stats};
pub use imatrix::{ImatrixOptions, ImatrixProgress, imatrix};
pub use perplexity::{Perplexity, perplexity};
pub use runner::{Inputs, KvType, KvTypeError, Runner, RunnerConfig, Target};
