//! `web`: the package and the page for browsers, in one step.

mod build;
pub(crate) mod kernels;
mod notices;
mod panics;
mod site;
mod size;
mod test;
pub(crate) mod wgsl_pre;

pub(crate) use build::{cases, modules, threads};
pub(crate) use test::{hostile, test};

/// Crates and folders of the package's modules: the engine, and those that pages load when they need them.
const MODULES: [(&str, &str); 3] =
    [("chaski-web", "wasm"), ("chaski-grammar", "wasm/grammar"), ("chaski-folder", "wasm/folder")];

/// Builds the package and the site with it, and checks the sizes.
///
/// # Errors
/// A step fails, or the result exceeds its size limit.
pub(crate) fn build() -> anyhow::Result<()> {
    build::release()?;
    site::assemble()?;
    size::check(&build::package())
}

/// Builds the same for tests, quickly: larger and slower.
///
/// # Errors
/// If a step fails.
pub(crate) fn build_for_tests() -> anyhow::Result<()> {
    build::quick()?;
    site::assemble()
}
