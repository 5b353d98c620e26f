//! Logits with experts elsewhere, against those of one machine.

use anyhow::{Context as _, ensure};

use super::delay::Random;
use super::site::{Process, Site, load};

/// Values of the vocabulary that random tokens have.
const TOKENS: u64 = 250;

/// Modes of a hub.
pub(super) const MODES: [(&str, &[&str]); 3] =
    [("exact", &[]), ("fast", &["--swarm-fast"]), ("fast, a row each", &["--swarm-fast", "--swarm-rows"])];

/// Options of the table.
#[derive(clap::Args)]
pub(super) struct Args {
    #[arg(long, value_delimiter = ',', default_value = "2")]
    workers: Vec<usize>,
    /// Workers that hold each expert
    #[arg(long, value_delimiter = ',', default_value = "1")]
    r: Vec<usize>,
    /// Tokens of a run
    #[arg(long, default_value_t = 2000)]
    tokens: usize,
    #[arg(long, default_value_t = 5)]
    seeds: u64,
}

/// Compares all modes, and fails if the exact one differs in a bit.
pub(super) fn table(site: &Site, args: &Args) -> anyhow::Result<()> {
    for &workers in &args.workers {
        for &replicas in args.r.iter().filter(|r| **r <= workers) {
            modes(site, (workers, replicas), args.tokens, args.seeds)?;
        }
    }
    Ok(())
}

fn modes(site: &Site, swarm: (usize, usize), tokens: usize, seeds: u64) -> anyhow::Result<()> {
    let (workers, replicas) = swarm;
    let model = site.model(4)?;
    println!(
        "\n4 layers, {workers} workers, {replicas} of each expert, {tokens} random tokens of each of {seeds} seeds; {}\n",
        load()
    );
    println!("| mode | positions | equal to the bit | NMSE | same most probable token |");
    println!("|---|---:|---:|---:|---:|");
    for (mode, more) in MODES {
        let (mut n_row, mut n_equal, mut n_top, mut error, mut square) = (0, 0, 0, 0.0, 0.0);
        for seed in 1..=seeds {
            let mut random = Random(seed);
            let ids: Vec<String> = (0..tokens).map(|_| (random.next() % TOKENS).to_string()).collect();
            let ids = ids.join(",");
            let alone = logits(site, &model, &ids, None)?;
            let swarm = logits(site, &model, &ids, Some((swarm, more)))?;
            ensure!(alone.len() == tokens && swarm.len() == tokens, "a row of logits for each token");
            for (a, b) in alone.iter().zip(&swarm) {
                n_row += 1;
                n_equal += usize::from(a == b);
                n_top += usize::from(top(a) == top(b));
                for (a, b) in a.iter().zip(b) {
                    error += (a - b).powi(2);
                    square += a.powi(2);
                }
            }
        }
        println!("| {mode} | {n_row} | {n_equal} | {:.1e} | {n_top} |", error / square);
        ensure!(mode != "exact" || n_equal == n_row, "exact logits differ");
    }
    Ok(())
}

fn top(row: &[f64]) -> Option<usize> {
    (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b]))
}

/// A row of logits after each token, on one machine or with workers.
fn logits(
    site: &Site,
    model: &str,
    tokens: &str,
    swarm: Option<((usize, usize), &[&str])>,
) -> anyhow::Result<Vec<Vec<f64>>> {
    let [n_worker, n_replica] = swarm.map_or([0, 0], |((n, r), _)| [n, r]).map(|n| n.to_string());
    let mut args = vec!["logits", model, "--device", "cpu", "--tokens", tokens, "--json", "--chunk", "64"];
    if let Some((_, more)) = swarm {
        args.extend(["--swarm", "127.0.0.1:0", "--swarm-workers", &n_worker]);
        args.extend(["--swarm-replicas", &n_replica, "-v"]);
        args.extend(more);
    }
    let hub = Process::start(&site.program, &args)?;
    let mut workers = Vec::new();
    if let Some(((n, _), _)) = swarm {
        let address = hub.after("workers join at ws://")?;
        for i in 0..n {
            workers.push(site.worker(&address, i)?);
        }
    }
    let text = hub.output()?;
    text.lines().map(|line| serde_json::from_str(line).context("a row of logits")).collect()
}
