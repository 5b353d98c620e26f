//! Developer commands: `cargo xtask`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

mod kernels;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of the Chaski workspace")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Render the kernel templates to crates/kernels/rendered, each checked by naga.
    GenKernels {
        /// Change nothing; fail if the tree is stale.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::GenKernels { check } => kernels::generate(check),
    }
}

/// The root of the repository.
fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}
