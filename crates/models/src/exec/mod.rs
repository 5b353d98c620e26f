//! Running steps on a device: the [`Executor`] of schedulers and runners, implemented for GPUs and the CPU. Higher
//! layers do not distinguish them.

mod chain;
mod config;
mod cpu;
mod device;
mod executor;
mod gpu;
mod pool;

pub use config::{AbsentExperts, KvType, RunnerConfig, Target};
pub(crate) use device::DeviceExecutor;
pub use executor::{Executor, Outputs, Start};

/// Maximum number of drafted tokens: together with the certain one they form a batch that reads every matrix once.
pub(crate) const MAX_DRAFT: usize = 7;
