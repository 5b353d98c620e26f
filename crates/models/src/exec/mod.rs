//! Running steps on a device: the [`Executor`] that schedulers and runners work with, and its implementations for GPUs and
//! the CPU. Nothing above knows which of them it has.

mod chain;
mod config;
mod cpu;
mod device;
mod executor;
mod gpu;

pub use config::{Inputs, InputsError, KvType, RunnerConfig, Target};
pub(crate) use device::DeviceExecutor;
pub use executor::{Executor, Outputs, Start};

/// Tokens that can be drafted at once: with the one that is certain they make a step that every matrix is read once for.
pub(crate) const MAX_DRAFT: usize = 7;
