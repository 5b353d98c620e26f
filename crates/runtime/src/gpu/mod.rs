//! Everything that calls wgpu.

mod case;
mod device;
mod load;
mod model;
mod pipeline;
mod profile;

pub use case::{CaseReport, run_case};
pub use device::{AdapterSummary, Counters, Gpu, GpuOptions, adapters};
pub use load::{Progress, Stage, Tensors};
pub use model::{Choose, GpuModel, Memory, MemoryItem, Ticket};
pub use profile::{Profile, ProfileRow};
