//! Everything that calls wgpu.

#[cfg(not(target_arch = "wasm32"))]
mod away;
mod buffers;
mod case;
mod choose;
mod compile;
mod device;
#[cfg(not(target_arch = "wasm32"))]
mod first;
#[cfg(target_arch = "wasm32")]
#[path = "no_first.rs"]
mod first;
mod inputs;
#[cfg(not(target_arch = "wasm32"))]
mod lanes;
#[cfg(target_arch = "wasm32")]
#[path = "no_lanes.rs"]
mod lanes;
mod load;
mod making;
mod masks;
mod measure;
mod measure_formats;
mod model;
#[cfg(not(target_arch = "wasm32"))]
mod offload;
mod over;
mod pace;
mod picks;
mod pipeline;
#[cfg(not(target_arch = "wasm32"))]
mod places;
mod profile;
mod queue;
mod reads;
mod ready;
#[cfg(not(target_arch = "wasm32"))]
mod replay;
mod reports;
mod room;
mod running;
mod scales;
mod sent;
mod sequences;
mod snapshot;
mod steps;
#[cfg(not(target_arch = "wasm32"))]
mod store;
#[cfg(not(target_arch = "wasm32"))]
mod stream;
#[cfg(target_arch = "wasm32")]
#[path = "no_stream.rs"]
mod stream;
#[cfg(not(target_arch = "wasm32"))]
mod subgroup;
mod tape;
mod timer;
mod tune;
#[cfg(not(target_arch = "wasm32"))]
mod worker;

pub use case::{CaseReport, ReadyCase, run_case, self_test};
pub use device::{
    AdapterSummary, Counters, Gpu, GpuOptions, adapter_with, adapters, adapters_with, device_descriptor,
};
pub use load::{Progress, Stage};
pub use measure::Peaks;
pub use measure_formats::FormatRate;
pub use model::{GpuModel, LoadTimes};
pub use profile::{Profile, ProfileRow};
pub use reads::ExpertReads;
pub use ready::Ablation;
#[cfg(not(target_arch = "wasm32"))]
pub use replay::{
    ExpertReplay, ReplayCall, ReplayCalls, ReplayFill, ReplayGrowth, ReplayKernel, ReplayLayer, ReplayPiece,
    ReplayPipeline, ReplayPlan, ReplayRoute, ReplayRows, ReplayShard, ReplaySteps,
};
pub use room::DeviceMemory;
pub use sent::{SampleMode, StepOptions};
pub use tune::TuneStep;
#[cfg(not(target_arch = "wasm32"))]
pub use worker::ExpertWorker;

pub use crate::plan::{Memory, MemoryItem};
