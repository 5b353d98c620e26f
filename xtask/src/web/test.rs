//! The tests that run in a browser.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::build::{package, run};
use super::kernels;

/// Builds the package, writes the kernels, and runs all tests in the browser at `chromium`, once `modules` are there.
///
/// # Errors
/// If anything does not build, or a test fails.
pub(crate) fn test(chromium: &Path) -> anyhow::Result<()> {
    super::build(false)?;
    let texts = crate::root().join("target/web-kernels");
    kernels::write(&texts)?;
    let package = package();
    run(Command::new("npm").args(["run", "--silent", "check"]).current_dir(&package))?;
    // One file after the other: a software GPU takes every processor.
    let tests = ["kernels", "bundle", "loading", "page", "engine", "devices", "processor", "recover", "chat"]
        .map(|name| format!("test/{name}.test.js"));
    run(Command::new("node")
        .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .args(tests)
        .env("CHASKI_CHROMIUM", chromium)
        .env("CHASKI_KERNELS", &texts)
        .current_dir(&package))
    .context("tests in the browser")
}
