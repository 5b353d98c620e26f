//! `web`: the package and the page for browsers, in one step.

mod build;
pub(crate) mod kernels;
mod size;

pub(crate) use build::build;
