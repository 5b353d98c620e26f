//! From a graph to a list of dispatches: fusion, grouping of weights, memory, kernels. Pure data, no GPU.

mod expand;
mod fuse;
mod group;

pub use expand::{Columns, DecodePlan, PlanConfig, PlanError, Planned, Segment, Segments, Slot, plan};
pub use fuse::{FuseError, Fused, Norm, Part, fuse};
pub use group::{Aux, AuxRow, Group, Groups, Shard};
