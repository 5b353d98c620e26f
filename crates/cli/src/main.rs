//! The `chaski` command: runs, measures and inspects models in GGUF files.
//!
//! One file per command; shared options are in `options`, loading with its progress bars in `load`.
//! Answers go to stdout, everything else to stderr.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

mod bench;
mod cache;
mod completions;
mod config;
mod devices;
mod doctor;
mod draft;
mod drivers;
mod embed;
mod environment;
mod failure;
mod hub;
mod imatrix;
mod input;
mod interrupt;
mod llama_cpp;
mod load;
mod logits;
mod lora;
mod model_names;
mod names;
mod numbers;
mod options;
mod output;
mod overrides;
mod peaks;
mod perplexity;
mod progress;
mod quantize;
mod rerank;
mod run;
mod sampling_options;
mod serve;
mod show;
mod stats;
mod swarm;
mod swarm_options;
mod synth;
mod terminal;
mod tokenize;
mod trust;
mod tune;
mod tuned;
mod ui;
mod unfinished;
mod variables;
mod worker;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::hub::{HubArgs, Models};
use crate::model_names::{Role, Visit};
use crate::ui::{Ui, UiArgs};

/// With glibc's allocator, which has heaps for each thread, a server's memory grows by 2 to 5 % within thousands of
/// requests; with this one it stays where it is. Other architectures have pages whose size only the machine knows.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("CHASKI_COMMIT"),
    ", wgpu ",
    env!("CHASKI_WGPU_VERSION"),
    ")"
);

const AFTER_HELP: &str = "\
Examples:
  chaski run -p \"Once upon a time\"              continue a text with the built-in model
  chaski run model.gguf \"Why is the sky blue?\"  ask a model
  chaski run model.gguf                         talk to it
  chaski run hf:org/repo:Q4_K_M                 the same with a model of Hugging Face, fetched once
  chaski serve model.gguf                       let programs ask it, by the API of OpenAI
  chaski bench model.gguf                       how fast it is here
  chaski devices                                which GPUs there are
  chaski doctor                                 whether everything works here

Options can also be set in the environment (CHASKI_TEMP for --temp) and in a file; `chaski config` shows both.

Exit codes:
  0  done    1  failed    2  wrong usage    3  no such model    4  out of memory, or the disk is full
  130  Ctrl-C    143  SIGTERM    129  SIGHUP, as when the terminal is closed";

/// Runs large language models from GGUF files on any GPU.
#[derive(Parser)]
#[command(name = "chaski", version = LONG_VERSION, after_help = AFTER_HELP, propagate_version = true)]
// Of an option that is repeated the last value counts, as scripts that add to a command line expect.
#[command(arg_required_else_help = true, infer_subcommands = true, args_override_self = true)]
struct Cli {
    #[command(flatten)]
    ui: UiArgs,
    #[command(flatten)]
    hub: HubArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a prompt, or start a chat
    #[command(long_about = run::LONG)]
    Run(Box<run::Args>),
    /// Serve models to programs over HTTP
    #[command(long_about = serve::LONG)]
    Serve(Box<serve::Args>),
    /// Show a model file's contents and memory needs
    Show(show::Args),
    /// Fetch a model, or what is missing of it
    #[command(long_about = hub::PULL_LONG)]
    Pull(hub::PullArgs),
    /// List the models that are here
    List(hub::ListArgs),
    /// Remove a model from the cache
    Rm(hub::RmArgs),
    /// Compare the files of the cache with their digests
    Verify(hub::VerifyArgs),
    /// Remove old incomplete downloads, and contents that no model names
    Prune(hub::PruneArgs),
    /// List the GPUs, or measure one
    Devices(devices::Args),
    /// Test the devices here, and say what is slow or broken
    #[command(long_about = doctor::LONG)]
    Doctor(doctor::Args),
    /// Measure speed
    #[command(long_about = bench::LONG)]
    Bench(Box<bench::Args>),
    /// Find the fastest kernels for a model on this device
    #[command(long_about = tune::LONG)]
    Tune(tune::Args),
    /// Convert text to token ids
    #[command(long_about = tokenize::LONG)]
    Tokenize(tokenize::Args),
    /// Compute text embeddings
    #[command(long_about = embed::LONG)]
    Embed(embed::Args),
    /// Sort documents by how well they fit a query
    #[command(long_about = rerank::LONG)]
    Rerank(rerank::Args),
    /// Measure a model's perplexity on a text
    #[command(long_about = perplexity::LONG)]
    Perplexity(perplexity::Args),
    /// Print the logits after every token, to compare engines
    #[command(long_about = logits::LONG)]
    Logits(logits::Args),
    /// Quantize a model or convert its tensor types
    #[command(long_about = quantize::LONG)]
    Quantize(Box<quantize::Args>),
    /// Write a checkpoint of Hugging Face or MLC as a GGUF file
    #[command(long_about = quantize::folder::LONG)]
    Convert(Box<quantize::folder::Args>),
    /// Compute an importance matrix for quantize
    #[command(long_about = imatrix::LONG)]
    Imatrix(imatrix::Args),
    /// Write a model with random weights in the shape of a real one
    Synth(synth::Args),
    /// Compute experts of a model for another machine
    #[command(long_about = worker::LONG)]
    Worker(worker::Args),
    /// Show a swarm, or make its token
    #[command(long_about = swarm::LONG)]
    Swarm(swarm::Args),
    /// Show the options in force, and where they come from
    #[command(long_about = config::LONG)]
    Config(config::Args),
    /// Print a shell completion script
    Completions(completions::Args),
    /// Print the manual pages
    Man(completions::ManArgs),
}

impl Command {
    /// Visits the arguments that name models, which become files before the command runs. `show` reads those that are
    /// not here by ranges, and the commands about the cache take names.
    fn models(&mut self, visit: Visit<'_>) -> anyhow::Result<()> {
        match self {
            Command::Run(a) => a.models(visit),
            Command::Serve(a) => a.models(visit),
            Command::Bench(a) => a.models(visit),
            Command::Tune(a) => a.model.models(visit),
            Command::Tokenize(a) => a.words.models(visit),
            Command::Embed(a) => a.words.models(visit),
            Command::Rerank(a) => a.models(visit),
            Command::Perplexity(a) => a.model.models(visit),
            Command::Logits(a) => a.model.models(visit),
            Command::Quantize(a) => visit(&mut a.input, Role::Main),
            Command::Convert(a) => visit(&mut a.input, Role::Main),
            Command::Imatrix(a) => a.model.models(visit),
            Command::Swarm(a) => a.models(visit),
            Command::Synth(a) => a.vocab.iter_mut().try_for_each(|vocab| visit(vocab, Role::Main)),
            Command::Show(_)
            | Command::Pull(_)
            | Command::List(_)
            | Command::Rm(_)
            | Command::Verify(_)
            | Command::Prune(_)
            | Command::Devices(_)
            | Command::Doctor(_)
            | Command::Worker(_)
            | Command::Config(_)
            | Command::Completions(_)
            | Command::Man(_) => Ok(()),
        }
    }
}

fn main() -> ExitCode {
    environment::silence_device_select();
    let args: Vec<OsString> = std::env::args_os().collect();
    let mut root = Cli::command();
    root.build();
    let line = match llama_cpp::expand(args, &root) {
        Ok(line) => line,
        Err(e) => return failure::report(&e.into(), &Ui::plain()),
    };
    let matches = match Cli::command().try_get_matches_from(&line.args) {
        Ok(matches) => matches,
        Err(e) => return failure::usage(e, line.spellings(&root)),
    };
    let configured = config::Sources::of_process(&matches, &root).and_then(|sources| {
        let matches = config::parse(&line.args, matches, &root, Cli::command(), &sources)?;
        Ok((sources, matches))
    });
    let (sources, matches) = match configured {
        Ok(configured) => configured,
        Err(e) => return failure::report(&e, &Ui::plain()),
    };
    let mut cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(e) => return failure::usage(e, Vec::new()),
    };
    let ui = Ui::new(&cli.ui);
    ui::log_to_stderr(&ui);
    line.notes.iter().for_each(|note| ui.detail(note));
    let models = Models::new(cli.hub, sources.aliases(), &ui);
    if let Err(e) = cli.command.models(&mut |path, role| {
        *path = models.path_of(path, role)?;
        Ok(())
    }) {
        return failure::report(&e, &ui);
    }
    let result = match cli.command {
        Command::Run(a) => run::run(*a, &models, &ui),
        Command::Serve(a) => {
            let args = line.args;
            let again = config::Again { args, matches, root, fresh: Cli::command, sources };
            serve::run(*a, again, &models, &ui)
        }
        Command::Show(a) => show::run(&a, &models),
        Command::Pull(a) => hub::pull(&a, &models),
        Command::List(a) => hub::list(&a, &models),
        Command::Rm(a) => hub::rm(&a, &models),
        Command::Verify(a) => hub::verify(&a, &models),
        Command::Prune(a) => hub::prune(&a, &models),
        Command::Devices(a) => devices::run(&a, &ui),
        Command::Doctor(a) => doctor::run(&a, &ui),
        Command::Bench(a) => bench::run(*a, &ui),
        Command::Tune(a) => tune::run(&a, &ui),
        Command::Tokenize(a) => tokenize::run(&a, &ui),
        Command::Embed(a) => embed::run(&a, &ui),
        Command::Rerank(a) => rerank::run(&a, &ui),
        Command::Perplexity(a) => perplexity::run(&a, &ui),
        Command::Logits(a) => logits::run(&a, &ui),
        Command::Quantize(a) => quantize::run(*a, &ui),
        Command::Convert(a) => quantize::folder::run(*a, &ui),
        Command::Imatrix(a) => imatrix::run(&a, &ui),
        Command::Synth(a) => synth::run(a, &ui),
        Command::Worker(a) => worker::run(&a, &ui),
        Command::Swarm(a) => swarm::run(&a, &ui),
        Command::Config(a) => config::run(&a, &root, &sources),
        Command::Completions(a) => completions::run(&a, Cli::command()),
        Command::Man(a) => completions::man(&a, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => failure::report(&e, &ui),
    }
}
