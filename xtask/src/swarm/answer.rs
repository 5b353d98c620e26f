//! A greedy answer of a hub whose experts are away, token by token.

use std::io::{BufRead as _, BufReader};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::counters::Counters;
use super::delay::Delay;
use super::lab::Workers;
use super::site::{Process, Site};

/// A question to a swarm.
#[derive(Copy, Clone)]
pub(super) struct Ask<'a> {
    /// File of the model.
    pub(super) model: &'a str,
    pub(super) workers: usize,
    pub(super) replicas: usize,
    pub(super) delay: Delay,
    /// The delay is the time of a service that answers one task after another.
    pub(super) is_serial: bool,
    pub(super) tokens: usize,
    pub(super) seed: u64,
    /// Further options of the hub.
    pub(super) more: &'a [&'a str],
}

/// Counters of the hub at its end.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Counts {
    pub(super) calls: f64,
    pub(super) tasks: f64,
    pub(super) late: f64,
    pub(super) won: f64,
    pub(super) at_once: f64,
    /// Tasks that the hub computed itself.
    pub(super) local: f64,
}

/// An answer.
pub(super) struct Answer {
    pub(super) text: String,
    /// Milliseconds between tokens.
    pub(super) gaps: Vec<f64>,
    pub(super) counts: Counts,
    /// Frames and bytes.
    pub(super) counters: Arc<Counters>,
}

/// Starts a hub and its workers, and has it answer. `on_token` is called at each token with its index.
pub(super) async fn answer(
    site: &Site,
    ask: &Ask<'_>,
    mut on_token: impl FnMut(usize, &mut Workers) -> anyhow::Result<()>,
) -> anyhow::Result<Answer> {
    let [n, workers, replicas] = [ask.tokens, ask.workers, ask.replicas].map(|n| n.to_string());
    let mut args =
        vec!["run", ask.model, "--device", "cpu", "--jsonl", "-p", "Once upon a time", "--temp", "0"];
    args.extend([
        "--ignore-eos",
        "-n",
        &n,
        "--swarm",
        "127.0.0.1:0",
        "--swarm-workers",
        &workers,
        "-v",
        "-t",
        "1",
    ]);
    args.extend(["--swarm-replicas", &replicas]);
    args.extend(ask.more);
    let mut hub = Process::start(&site.program, &args)?;
    let address = hub.after("workers join at ws://")?;
    let mut lab = Workers::start(site, &address, ask.workers, (ask.delay, ask.is_serial), ask.seed).await?;
    let lines = BufReader::new(hub.stdout()?).lines();
    let (mut text, mut times) = (String::new(), Vec::new());
    // The proxies run on other threads meanwhile.
    tokio::task::block_in_place(|| {
        for line in lines {
            let piece: Value = serde_json::from_str(&line?)?;
            if piece["type"] == "piece" {
                times.push(Instant::now());
                text += piece["text"].as_str().unwrap_or_default();
                on_token(times.len() - 1, &mut lab)?;
            }
        }
        anyhow::Ok(())
    })?;
    let status = hub.wait()?;
    ensure!(status.success(), "{status}:\n{}", hub.stderr());
    ensure!(times.len() > 2, "{} tokens:\n{}", times.len(), hub.stderr());
    let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect();
    let seen = hub.stderr();
    let line = seen.lines().find_map(|line| line.split_once("swarm: "));
    let (_, line) = line.with_context(|| format!("the hub tells no counters:\n{seen}"))?;
    Ok(Answer { text, gaps, counts: counts(line)?, counters: lab.counters.clone() })
}

/// Counters from the line of a hub.
fn counts(line: &str) -> anyhow::Result<Counts> {
    let numbers = line.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<f64> = numbers.map(|n| n.parse().unwrap_or(f64::NAN)).collect();
    match numbers[..] {
        [calls, tasks, late, won, at_once, _, local, ..] => {
            Ok(Counts { calls, tasks, late, won, at_once, local })
        }
        _ => bail!("`{line}` is no line of counters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_line_of_a_hub() {
        let line = "192 calls, 200 tasks: 7 hedged late (5 won), 1 at once, 8 cancelled, 3 by the hub, 2 checked, 0 disputed, 9 products in sums";
        let expected = Counts { calls: 192.0, tasks: 200.0, late: 7.0, won: 5.0, at_once: 1.0, local: 3.0 };
        assert_eq!(counts(line).unwrap(), expected);
        assert!(counts("no numbers").is_err());
    }
}
