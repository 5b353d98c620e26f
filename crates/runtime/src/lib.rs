//! Chaski's runtime: from a graph to results, on a GPU through wgpu or on the CPU.
//!
//! A model builds a [`graph::Graph`], plain data. [`plan`] turns it into dispatches: it fuses nodes, groups weights,
//! assigns activations to buffers and selects kernels. [`gpu`] is the only module that calls wgpu: it opens a device,
//! loads the weights and replays the plan. [`cpu`] interprets the same graph with the operations' references.
//!
//! Nothing is allocated after loading: a token is one compute pass over existing bind groups, and per-token state
//! (position, last token, draws) is in a buffer that the GPU advances itself.

mod error;
mod experts;
mod formats;
mod platform;
mod step;
mod tensors;
mod workers;

pub mod cpu;
pub mod gpu;
pub mod kernels;
pub mod plan;

/// Threads of the CPU executor that a page starts: workers of its own with this module and its memory. A module has
/// them if it is built with atomics.
#[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
pub mod page_threads {
    pub use crate::workers::{failures, gather, work};
}

pub use chaski_graph as graph;

pub use error::RuntimeError;
pub use experts::{ExpertCall, ExpertError, ExpertFuture, Experts, Home, Pair};
pub use formats::FormatError;
pub use platform::for_each;
pub use step::{Column, ColumnOutput, RowInput, StepOutputs};
pub use tensors::Tensors;
/// The version of wgpu whose devices can be shared ([`gpu::Gpu::with_device`]).
pub use wgpu;

/// Copies of the recurrent state per sequence, in addition to the state itself.
pub const STATE_COPIES: usize = 2;

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
