//! Chaski's runtime: from a graph to results, on a GPU through wgpu or on the processor.
//!
//! A model builds a [`graph::Graph`], plain data. [`plan`] turns it into dispatches: it fuses nodes, puts weights into
//! groups, assigns activations to buffers and picks kernels. [`gpu`] is the only place that calls wgpu: it opens a
//! device, loads the weights and replays the plan. [`cpu`] interprets the same graph with the operations' references.
//!
//! Nothing is allocated after loading: a token is one compute pass over bind groups that exist, and what changes from
//! token to token (position, last token, draws) lives in a buffer that the GPU itself advances.

mod error;
mod formats;
mod platform;
mod step;
mod tensors;

pub mod cpu;
pub mod gpu;
pub mod kernels;
pub mod plan;

pub use chaski_graph as graph;

pub use error::RuntimeError;
pub use formats::FormatError;
pub use platform::for_each;
pub use step::{Column, ColumnOutput, StepOutputs};
pub use tensors::Tensors;
/// The version of wgpu whose devices can be shared ([`gpu::Gpu::with_device`]).
pub use wgpu;

/// Copies of the recurrent state that a model has room for, beside the state itself.
pub const STATE_COPIES: usize = 2;

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
