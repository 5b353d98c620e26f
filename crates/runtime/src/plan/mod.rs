//! From a graph to a list of dispatches: fusion, grouping of weights, memory, kernels. Pure data, no GPU.

mod attention;
mod buffers;
mod crossing;
mod cuts;
mod describe;
mod expand;
mod experts;
mod fusion;
mod group;
mod recurrent;
mod segments;
mod single;
mod stages;
mod steps;
mod streaming;
mod whole;

pub use buffers::{BufferSlot, BufferSpec, BufferUsage, Memory, MemoryItem, N_READBACK};
pub use fusion::{Fusions, RULES, Rule, fuse};
pub use group::{Aux, AuxRow, Group, Groups, Shard};
pub use segments::{
    DecodePlan, Growth, HeadPlan, Hidden, PlanConfig, PlanError, Planned, PromptPlan, Segment, Segments,
    Slot, Work,
};
pub use stages::{Crossing, Place, Stage, dispatches};
pub use steps::{Form, Fused, HeadNorm, Heads, Norm, Part, Step, Steps};
pub use streaming::{OffloadedExperts, Streaming};
pub use whole::{memory_need, plan, plan_on};
