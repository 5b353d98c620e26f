//! Developer commands: `cargo xtask`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

mod kernels;
mod load;
mod map;
mod mesa;
mod models;
mod ops;
mod perf;
mod swarm;
mod test;
mod tools;
mod web;
#[cfg(test)]
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of the Chaski workspace")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check all kernels with naga, and update the samples in crates/kernels/rendered.
    GenKernels {
        /// Change nothing; fail if the tree is out of date.
        #[arg(long)]
        check: bool,
        /// Kernels to add to the samples, by name
        #[arg(conflicts_with = "check")]
        add: Vec<String>,
    },
    /// Write docs/ops.md from the table of operations.
    OpsDoc {
        /// Change nothing; fail if the page is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Write docs/models.md from the table of model families and their fixtures.
    ModelsDoc {
        /// Change nothing; fail if the page is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Write docs/performance.md and its plots from measurements.
    PerfDoc {
        /// Output folders of xtask/perf.sh, whose measurements replace those of the same name in the repository.
        folders: Vec<std::path::PathBuf>,
        /// Change nothing; fail if the page or a plot is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Build the npm package (wasm included) in crates/web/npm.
    Web,
    /// Write the WGSL of all browser kernels, as JSON.
    WebKernels {
        /// Output folder.
        folder: std::path::PathBuf,
    },
    /// Build the package's module with threads alone.
    WebThreads,
    /// Build the test cases of operations for JavaScript in target/web-cases.
    WebCases,
    /// Build the npm package of wgsl-pre in target/wgsl-pre-npm, and test it.
    WgslPre {
        /// With Jinja alone, built as for tests: its size is not checked.
        #[arg(long)]
        sample: bool,
    },
    /// Run the hostile templates and grammars of the tests as WebAssembly, in Node.js.
    WebHostile {
        /// Every fourth of them.
        #[arg(long)]
        sample: bool,
    },
    /// Compare the map in ARCHITECTURE.md with the code: crates, and module cycles.
    Map,
    /// The step `browser` of the tests.
    #[command(hide = true)]
    TestBrowser {
        /// A Chromium.
        chromium: std::path::PathBuf,
        /// The command `chaski`.
        program: std::path::PathBuf,
        /// The release module, and the tests of bundles, other devices and browsers, large models and the whole page.
        #[arg(long)]
        whole: bool,
        /// All cases: sets CHASKI_TEST_FULL=1.
        #[arg(long)]
        full: bool,
        /// Install nothing.
        #[arg(long)]
        no_install: bool,
    },
    /// Measure a server under load: throughput, and times to the first and between tokens.
    Load(load::Args),
    /// Measure swarms of real processes on this machine, with delays between them.
    SwarmLab(swarm::Args),
    /// Install the tools that the tests need (listing them), then run the tests.
    Test {
        /// Tests to run.
        #[arg(value_enum, default_value = "all")]
        scope: test::Scope,
        /// Also run larger models and longer grids: sets CHASKI_TEST_FULL=1.
        #[arg(long)]
        full: bool,
        /// Install nothing: missing tools are an error.
        #[arg(long)]
        no_install: bool,
    },
}

fn main() -> ExitCode {
    if let Some(code) = test::in_place_of_rustdoc() {
        return code;
    }
    let result = match Args::parse().command {
        Command::GenKernels { check, add } => kernels::generate(check, &add),
        Command::OpsDoc { check } => ops::document(check),
        Command::ModelsDoc { check } => models::document(check),
        Command::PerfDoc { folders, check } => perf::document(&folders, check),
        Command::Web => web::build(),
        Command::WebKernels { folder } => web::kernels::write(&folder).map(drop),
        Command::WebThreads => web::threads(),
        Command::WebCases => web::cases().map(drop),
        Command::WgslPre { sample } => web::wgsl_pre::package(!sample).map(|line| println!("{line}")),
        Command::WebHostile { sample } => web::hostile(!sample).map(drop),
        Command::Map => map::check(),
        Command::TestBrowser { chromium, program, whole, full, no_install } => {
            web::test(&chromium, &program, !no_install, whole, full)
        }
        Command::Load(args) => load::run(&args),
        Command::SwarmLab(args) => swarm::run(&args),
        Command::Test { scope, full, no_install } => test::run(scope, full, !no_install),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}
