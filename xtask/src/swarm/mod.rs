//! `cargo xtask swarm-lab`: swarms of real processes on this machine, whose network is a proxy with delays
//! (docs/swarm.md).

mod answer;
mod bytes;
mod counted;
mod counters;
mod delay;
mod faults;
mod http;
mod idle;
mod jepsen;
mod lab;
mod liar;
mod model;
mod null;
mod proxy;
mod same;
mod site;
mod sole;
mod sums;
mod tables;
mod timer;

use std::path::PathBuf;

use anyhow::Context as _;

use self::delay::Delay;
use self::site::Site;

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    table: Table,
    /// The command `chaski`; a release build measures what users have
    #[arg(long, global = true, default_value = "target/release/chaski")]
    chaski: PathBuf,
    /// Folder for models and stores of workers
    #[arg(long, global = true, default_value = "target/swarm-lab")]
    folder: PathBuf,
}

#[derive(clap::Subcommand)]
enum Table {
    /// Compute tables 1 and 3 of the paper from its equations
    Model,
    /// Measure phases of experts on workers with random delays (table 1)
    Table1 {
        #[arg(long, default_value_t = 8)]
        workers: usize,
        /// Experts of a phase
        #[arg(long, default_value_t = 8)]
        k: usize,
        /// Delay of an answer: constant:MS, lognormal:MEDIAN:SIGMA, pareto:SHARE%:LEAST:ALPHA or stalls:MEAN:SHARE%
        #[arg(long, default_value = "lognormal:20:0.5")]
        delay: Delay,
        /// Workers that are asked for each expert
        #[arg(long, value_delimiter = ',', default_value = "1,2,3,4")]
        h: Vec<usize>,
        #[arg(long, default_value_t = 2000)]
        phases: usize,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Measure tokens of a model of 48 layers by the round trip (table 3)
    Table3 {
        /// Milliseconds
        #[arg(long, value_delimiter = ',', default_value = "0.5,2,10,50")]
        rtt: Vec<f64>,
        #[arg(long, default_value_t = 24)]
        tokens: usize,
    },
    /// Measure tails of tokens under policies of hedging
    Tail {
        #[arg(long, default_value = "pareto:2%:5:1.5")]
        delay: Delay,
        #[arg(long, value_delimiter = ',', default_value = "never,auto,always")]
        hedge: Vec<String>,
        #[arg(long, default_value_t = 8)]
        workers: usize,
        #[arg(long, default_value_t = 48)]
        layers: u32,
        #[arg(long, default_value_t = 500)]
        tokens: usize,
    },
    /// Compare logits of random tokens with those of one machine: exact, and with --swarm-fast
    Same(same::Args),
    /// Measure tokens and bytes of a model with and without sums at the workers, one mode after the other
    Sums(sums::Args),
    /// Have a worker lie in each text, until it is caught
    Liar(liar::Args),
    /// Break something in each text
    Jepsen(jepsen::Args),
    /// Count bytes of frames and sockets
    Bytes(bytes::Args),
    /// Measure rounds and processor time of a hub without a model's work
    Rounds(null::RoundArgs),
    /// Measure policies of hedging on a hub without a model's work, one text or several at once
    Hedges(null::HedgeArgs),
    /// Kill the only holder of experts, with and without the model's file at the hub
    Sole {
        #[arg(long, default_value_t = 4)]
        layers: u32,
        #[arg(long, default_value_t = 64)]
        tokens: usize,
    },
    /// Kill a worker in the midst of each answer
    Kill {
        #[arg(long, default_value_t = 3)]
        workers: usize,
        #[arg(long, default_value_t = 4)]
        layers: u32,
        #[arg(long, default_value_t = 64)]
        tokens: usize,
        #[arg(long, default_value_t = 20)]
        seeds: u64,
    },
}

/// Runs a table.
///
/// # Errors
/// A process that cannot be started or does not do what it should.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Table::Model = args.table {
        model::print();
        return Ok(());
    }
    let program = args.chaski.canonicalize();
    let program = program.with_context(|| format!("no command at {}", args.chaski.display()))?;
    std::fs::create_dir_all(&args.folder)?;
    let site = Site { program, folder: args.folder.canonicalize()? };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match &args.table {
            Table::Model => Ok(()),
            Table::Table1 { workers, k, delay, h, phases, seed } => {
                tables::table1(&site, *delay, h, (*workers, *k, *phases, *seed)).await
            }
            Table::Table3 { rtt, tokens } => tables::table3(&site, rtt, *tokens).await,
            Table::Tail { delay, hedge, workers, layers, tokens } => {
                tables::tail(&site, *delay, hedge, (*workers, *layers, *tokens)).await
            }
            Table::Same(args) => same::table(&site, args),
            Table::Sums(args) => sums::table(&site, args).await,
            Table::Liar(args) => liar::table(&site, args).await,
            Table::Jepsen(args) => jepsen::table(&site, args).await,
            Table::Bytes(args) => bytes::table(&site, args).await,
            Table::Rounds(args) => null::rounds(&site, args).await,
            Table::Hedges(args) => null::hedges(&site, args).await,
            Table::Sole { layers, tokens } => sole::table(&site, (*layers, *tokens)).await,
            Table::Kill { workers, layers, tokens, seeds } => {
                tables::kill(&site, (*workers, *layers, *tokens, *seeds)).await
            }
        }
    })
}
