//! The tests that run in a browser.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::build::{self, cases, package, run};
use super::kernels;
use crate::mesa;

/// Tests that need a browser: kernels, the engine on both devices and for several answers, downloads, grammars, tabs
/// that share an engine, the page, and that of the server, tabs as workers of a swarm. By default files leave out cases
/// that are like the rest of them (`PART`).
const IN_BROWSER: &[&str] = &[
    "kernels", "cases", "loading", "engine", "cpu", "several", "grammar", "shared", "page", "served", "swarm",
];
/// Further tests: facts of models, LoRAs and drafts, folders of safetensors, answers as elements, bundles, clients of
/// OpenAI, threads, other devices and browsers, large models, the whole page and its pictures.
const MORE: &[&str] = &[
    "facts", "loras", "folder", "prose", "bundle", "starters", "fetch", "memory", "threads", "devices",
    "recover", "chat", "look", "browsers",
];

/// Tells tests that they run in part.
const PART: &str = "CHASKI_TEST_PART";

/// Bits of a vector of lavapipe: with 128, subgroups have four threads, and kernels are compiled in a third of the time
/// that the processor's own width takes.
const WIDTH: &str = "LP_NATIVE_VECTOR_WIDTH";

/// Builds the package, writes the kernels and their cases, and runs all tests in the browser at `chromium`, once
/// `modules` are installed, and the engine's in Node; with `whole` also those of `MORE`, the cases that files leave out
/// otherwise, those in Dawn for Node, and with the release module. `program` is the command `chaski`, whose server has
/// a page.
///
/// # Errors
/// A build or a test fails.
pub(crate) fn test(
    chromium: &Path,
    program: &Path,
    install: bool,
    whole: bool,
    full: bool,
) -> anyhow::Result<()> {
    if whole {
        super::build()?
    } else {
        super::build_for_tests()?
    }
    let texts = crate::root().join("target/web-kernels");
    kernels::write(&texts)?;
    let cases = cases()?;
    let package = package();
    run(Command::new("npm").args(["run", "--silent", "check"]).current_dir(&package))?;
    let node = |files: &[&str]| {
        let mut command = Command::new("node");
        // One file after another: a software GPU uses every core.
        command.args(["--test", "--test-concurrency=1", "--test-reporter=spec"]);
        command.args(files.iter().map(|name| format!("test/{name}.test.js")));
        command.env("CHASKI_CASES", &cases).current_dir(&package);
        if full {
            command.env("CHASKI_TEST_FULL", "1");
        }
        if !whole {
            command.env(PART, "1");
        }
        command
    };
    match whole.then(|| mesa::lavapipe(install)) {
        None => run(&mut node(&["node-engine"])).context("tests in Node")?,
        Some(Ok(driver)) => {
            let mut tests = node(&["dawn", "node-engine"]);
            tests.envs(driver.env());
            if !full && std::env::var_os(WIDTH).is_none() {
                tests.env(WIDTH, "128");
            }
            run(&mut tests).context("tests in Dawn for Node")?
        }
        Some(Err(e)) => {
            println!("SKIPPED: tests in Dawn for Node: {e:#}");
            run(&mut node(&["node-engine"])).context("tests in Node")?;
        }
    }
    if !whole {
        let more = MORE.join(", ");
        println!(
            "SKIPPED: in the browser {more}, and parts of other files, and Dawn for Node: `cargo xtask test web`"
        );
    }
    let files = [IN_BROWSER, if whole { MORE } else { &[] }].concat();
    // The tests run in the package's folder.
    let program = std::path::absolute(program).context("path of the command `chaski`")?;
    let mut tests = node(&files);
    tests.env("CHASKI_CHROMIUM", chromium).env("CHASKI_PROGRAM", program).env("CHASKI_KERNELS", &texts);
    run(&mut tests).context("tests in the browser")
}

/// Runs the hostile inputs as WebAssembly in Node.js, every fourth unless `full`; returns the line for the summary.
///
/// # Errors
/// The build fails, or an input ends otherwise than with a result or an error.
pub(crate) fn hostile(full: bool) -> anyhow::Result<String> {
    let folder = build::hostile()?;
    let mut command = Command::new("node");
    if full {
        command.env("CHASKI_TEST_FULL", "1");
    }
    let script = crate::root().join("crates/text/tests/hostile/wasm.mjs");
    let out =
        command.arg(script).arg(folder).stderr(Stdio::inherit()).output().context("could not run node")?;
    let line = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    println!("{line}");
    ensure!(out.status.success(), "{}", out.status);
    Ok(line)
}
