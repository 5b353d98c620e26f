//! `wgsl-pre`: the npm package of the preprocessor, its size, and its test in Node.js.

use std::fs;
use std::process::Command;

use anyhow::Context as _;

use super::build::{TESTS, bind, build_wasm, built, copy, modules, optimize, run};
use super::size;

/// Profile of the module that is published.
const PROFILE: &str = "web";
/// Features and maximum bytes of the module, raw and compressed; README.md of the crate states them, too.
const SIZES: [(&str, &[&str], [usize; 2]); 2] = [
    ("without Jinja", &["--no-default-features", "--features", "wasm"], [170_000, 77_000]),
    ("with Jinja", &["--features", "wasm"], [530_000, 235_000]),
];

/// Builds the package into `target/wgsl-pre-npm` and tests it; with `full`, the module is that which is published, with
/// its size and that without Jinja checked, otherwise one for tests, built in a fraction of the time. Returns a line
/// for the summary.
///
/// # Errors
/// If a step fails, or a module exceeds its size limit.
pub(crate) fn package(full: bool) -> anyhow::Result<String> {
    modules()?;
    let root = crate::root();
    let folder = root.join("target/wgsl-pre-npm");
    if folder.is_dir() {
        fs::remove_dir_all(&folder).with_context(|| format!("could not empty {}", folder.display()))?;
    }
    let source = root.join("crates/wgsl-pre");
    copy(&source.join("npm"), &folder)?;
    for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&source.join(name), &folder.join(name))?;
    }
    let wasm = folder.join("wasm");
    let mut sizes = Vec::new();
    // The last one stays.
    for (name, features, limits) in SIZES.into_iter().skip(if full { 0 } else { SIZES.len() - 1 }) {
        let profile = if full { PROFILE } else { TESTS };
        build_wasm("wgsl-pre", profile, &[&["build", "--lib"], features].concat(), &[])?;
        bind(&built(profile, "wgsl_pre"), &wasm, "wgsl_pre")?;
        if !full {
            sizes.push(format!("{name}, size not checked"));
            continue;
        }
        let module = wasm.join("wgsl_pre_bg.wasm");
        optimize(&module, false)?;
        sizes.push(format!("{name} {}", size::module(&module, limits)?));
    }
    run(Command::new("node").args(["--test", "--test-reporter=spec", "test/"]).current_dir(&folder))?;
    println!("the package is in {}", folder.display());
    Ok(format!("NOTE: module of wgsl-pre: {}", sizes.join("; ")))
}
