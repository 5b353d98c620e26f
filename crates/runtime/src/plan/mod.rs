//! From a graph to a list of dispatches: fusion, grouping of weights, memory, kernels. Pure data, no GPU.

mod attention;
mod buffers;
mod config;
mod cpu;
mod crossing;
mod cuts;
mod describe;
mod encoder;
mod error;
mod expand;
mod experts;
mod fusion;
mod group;
mod joined;
mod memory;
mod planned;
mod recurrent;
#[cfg_attr(target_arch = "wasm32", path = "no_rounding.rs")]
mod rounding;
mod segments;
mod single;
mod stages;
mod steps;
mod streaming;
mod whole;
mod worker;

pub use config::{CpuLayers, PlanConfig};
pub use cpu::CpuStage;
pub use error::PlanError;
pub use fusion::{Fusions, RULES, Rule, fuse};
pub use group::{Aux, AuxColumns, AuxRow, Group, Groups, Shard};
pub use memory::{BufferSlot, BufferSpec, BufferUsage, Memory, MemoryItem, N_CROSSING, N_READBACK};
pub use planned::{Columns, Growth, Planned, Segment, Slot, Work};
pub use segments::{DecodePlan, HeadPlan, Hidden, PromptPlan, Segments};
pub use stages::{Crossing, Place, Stage, dispatches};
pub use steps::{Form, Fused, HeadNorm, Heads, Norm, Part, Step, Steps};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use streaming::WEIGHTS;
pub use streaming::{ExpertInput, ExpertSlots, OffloadedExperts, Streaming};
pub use whole::{memory_need, plan, plan_on};
pub use worker::{ExpertLayerPlan, ExpertPlan, ExpertPlans, plan_experts};
