//! A hub without a model's own work (`chaski swarm null`): its rounds and its processor time with workers that answer
//! at once, and hedges with workers behind delays.

use anyhow::Context as _;
use serde_json::Value;

use super::delay::Delay;
use super::idle;
use super::lab::Workers;
use super::site::{Process, Site, load};

/// Layers of a token.
const LAYERS: u32 = 48;

/// Options of the table of rounds.
#[derive(clap::Args)]
pub(super) struct RoundArgs {
    #[arg(long, value_delimiter = ',', default_value = "1,8")]
    workers: Vec<usize>,
    #[arg(long, default_value_t = 400)]
    tokens: usize,
    /// Columns of a task, 1 kB each way
    #[arg(long, value_delimiter = ',', default_value = "1,4")]
    columns: Vec<usize>,
}

/// Options of the table of hedges.
#[derive(clap::Args)]
pub(super) struct HedgeArgs {
    /// Texts at once
    #[arg(long, default_value_t = 1)]
    streams: usize,
    #[arg(long, default_value_t = 8)]
    workers: usize,
    /// Experts of a layer, each of another unit
    #[arg(long, default_value_t = 5)]
    f: usize,
    /// Tokens of a text
    #[arg(long, default_value_t = 400)]
    tokens: usize,
    /// Time from a task to its answer
    #[arg(long, default_value = "pareto:2%:5:1.5")]
    delay: Delay,
    /// Workers answer one task after another, with the delay as the time of each
    #[arg(long)]
    queue: bool,
    #[arg(long, value_delimiter = ',', default_value = "never,auto,always")]
    hedge: Vec<String>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The line of JSON of a hub.
struct Found(Value);

impl Found {
    fn number(&self, name: &str) -> anyhow::Result<f64> {
        self.0[name].as_f64().with_context(|| format!("no `{name}` in {}", self.0))
    }

    /// Quantiles 0.5, 0.9, 0.95, 0.99.
    fn quantiles(&self, name: &str) -> anyhow::Result<[f64; 4]> {
        let values =
            self.0[name].as_array().map(|list| list.iter().filter_map(Value::as_f64).collect::<Vec<_>>());
        values.and_then(|v| v.try_into().ok()).with_context(|| format!("no `{name}` in {}", self.0))
    }
}

fn hub(site: &Site, model: &str, args: &[(&str, String)]) -> anyhow::Result<(Process, String)> {
    let mut all = vec!["swarm", "null", model, "--swarm", "127.0.0.1:0"];
    all.extend(args.iter().flat_map(|(name, value)| [*name, value.as_str()]));
    let hub = Process::start(&site.program, &all)?;
    let address = hub.after("workers join at ws://")?;
    Ok((hub, address))
}

fn end(hub: Process) -> anyhow::Result<Found> {
    let line = tokio::task::block_in_place(|| hub.output())?;
    Ok(Found(serde_json::from_str(&line)?))
}

/// Rounds and processor time, one task for each worker.
///
/// # Errors
/// A hub that does not end well.
pub(super) async fn rounds(site: &Site, args: &RoundArgs) -> anyhow::Result<()> {
    let model = site.model(LAYERS)?;
    println!(
        "{} tokens of {LAYERS} layers, workers that answer at once, in one process; {}\n",
        args.tokens,
        load()
    );
    println!(
        "| workers | kB of rows in a frame | round p50 us | p90 | p99 | hub CPU us a frame | ms for 48 layers |\n\
         |---:|---:|---:|---:|---:|---:|---:|"
    );
    for &columns in &args.columns {
        for &n in &args.workers {
            let args = [("--workers", n), ("--tokens", args.tokens), ("--columns", columns)];
            let (hub, address) = hub(site, &model, &args.map(|(name, n)| (name, n.to_string())))?;
            idle::start(site, &address, n).await?;
            let found = end(hub)?;
            let [p50, p90, _, p99] = found.quantiles("round_us")?;
            // A task and its answer.
            let (frames, cpu) = (2.0 * found.number("tasks")?, found.number("cpu_seconds")?);
            println!(
                "| {n} | {columns} | {p50:.0} | {p90:.0} | {p99:.0} | {:.2} | {:.2} |",
                cpu / frames * 1e6,
                cpu / found.number("calls")? * f64::from(LAYERS) * 1e3
            );
        }
    }
    Ok(())
}

/// Tokens under policies of hedging, with workers that are processes behind delays.
///
/// # Errors
/// A hub that does not end well.
pub(super) async fn hedges(site: &Site, args: &HedgeArgs) -> anyhow::Result<()> {
    let model = site.model(LAYERS)?;
    println!(
        "{LAYERS} layers without a model's work, {} workers, 2 of each expert, {} texts of {} tokens at once, {:?}{}, seed {}; {}\n",
        args.workers,
        args.streams,
        args.tokens,
        args.delay,
        if args.queue { " one after another" } else { "" },
        args.seed,
        load()
    );
    println!(
        "| hedging | p50 ms | p95 | p99 | p99 of never | tasks a call | extra tasks | late | won | at once |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    let mut first = None;
    for policy in &args.hedge {
        let mut options: Vec<(&str, String)> = [
            ("--workers", args.workers),
            ("--streams", args.streams),
            ("--tokens", args.tokens),
            ("--used", args.f),
            ("--block", 4),
            ("--replicas", 2),
            ("--warm", 20),
        ]
        .map(|(name, n)| (name, n.to_string()))
        .into();
        options.push(("--hedge", policy.clone()));
        let (hub, address) = hub(site, &model, &options)?;
        let lab = Workers::start(site, &address, args.workers, (args.delay, args.queue), args.seed).await?;
        let found = end(hub)?;
        drop(lab);
        let [p50, _, p95, p99] = found.quantiles("token_us")?.map(|us| us / 1e3);
        let [tasks, calls, late, won, at_once] =
            ["tasks", "calls", "late", "won", "at_once"].map(|n| found.number(n));
        let (tasks, late, at_once) = (tasks?, late?, at_once?);
        println!(
            "| {policy} | {p50:.1} | {p95:.1} | {p99:.1} | {:.2} | {:.2} | {:.1} % | {late} | {} | {at_once} |",
            p99 / *first.get_or_insert(p99),
            tasks / calls?,
            100.0 * (late + at_once) / (tasks - late - at_once),
            won?
        );
    }
    Ok(())
}
