//! Logits with experts elsewhere, against those of one machine.

use anyhow::{Context as _, ensure};

use super::delay::Random;
use super::site::{Process, Site, load};

/// Values of the vocabulary that random tokens have.
const TOKENS: u64 = 250;

/// Compares both modes, and fails if the exact one differs in a bit.
pub(super) fn table(site: &Site, workers: usize, tokens: usize, seeds: u64) -> anyhow::Result<()> {
    let model = site.model(4)?;
    println!("4 layers, {workers} workers, {tokens} random tokens of each of {seeds} seeds; {}\n", load());
    println!("| mode | positions | equal to the bit | NMSE | same most probable token |");
    println!("|---|---:|---:|---:|---:|");
    for (mode, more) in [("exact", &[][..]), ("fast", &["--swarm-fast"])] {
        let (mut n_row, mut n_equal, mut n_top, mut error, mut square) = (0, 0, 0, 0.0, 0.0);
        for seed in 1..=seeds {
            let mut random = Random(seed);
            let ids: Vec<String> = (0..tokens).map(|_| (random.next() % TOKENS).to_string()).collect();
            let ids = ids.join(",");
            let alone = logits(site, &model, &ids, None)?;
            let swarm = logits(site, &model, &ids, Some((workers, more)))?;
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
    swarm: Option<(usize, &[&str])>,
) -> anyhow::Result<Vec<Vec<f64>>> {
    let n_worker = swarm.map_or(0, |(n, _)| n).to_string();
    let mut args = vec!["logits", model, "--device", "cpu", "--tokens", tokens, "--json", "--chunk", "64"];
    if let Some((_, more)) = swarm {
        args.extend(["--swarm", "127.0.0.1:0", "--swarm-workers", &n_worker, "--swarm-replicas", "1", "-v"]);
        args.extend(more);
    }
    let hub = Process::start(&site.program, &args)?;
    let mut workers = Vec::new();
    if let Some((n, _)) = swarm {
        let address = hub.after("workers join at ws://")?;
        for i in 0..n {
            workers.push(site.worker(&address, i)?);
        }
    }
    let text = hub.output()?;
    text.lines().map(|line| serde_json::from_str(line).context("a row of logits")).collect()
}
