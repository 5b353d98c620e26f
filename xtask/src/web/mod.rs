//! `web`: the package and the page for browsers, in one step.

mod build;
pub(crate) mod kernels;
mod notices;
mod site;
mod size;
mod test;
pub(crate) mod wgsl_pre;

pub(crate) use build::{build, build_for_tests, cases, modules};
pub(crate) use test::{hostile, test};
