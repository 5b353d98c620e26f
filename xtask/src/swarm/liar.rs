//! Workers that lie from some token on: tokens until the hub shuts them out, wrong texts, and honest workers that it
//! shuts out.

use std::sync::atomic::Ordering;

use anyhow::{Context as _, ensure};

use super::delay::{Delay, Random};
use super::faults::Lie;
use super::http::complete;
use super::lab::{Hub, Workers, mean, quantile, ready};
use super::site::{Site, load};

const PROMPT: &str = "Once upon a time";

/// Options of the table.
#[derive(clap::Args)]
pub(super) struct Args {
    #[arg(long, value_delimiter = ',', value_enum, default_value = "zero,nan,x1.01,other-expert,stale")]
    kind: Vec<Lie>,
    #[arg(long, default_value_t = 4)]
    workers: usize,
    #[arg(long, default_value_t = 48)]
    layers: u32,
    /// Texts, over all kinds
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// Every answer is confirmed before it is used
    #[arg(long)]
    verify: bool,
    /// Sums in 16 bits, whose texts depend on who answers: wrong ones are not counted
    #[arg(long)]
    fast: bool,
}

/// A trial: one worker lies in all its answers.
struct Trial {
    /// Tokens after the first lie until the hub closed the connection; `None` if it did not.
    tokens: Option<usize>,
    lies: u64,
    is_wrong: bool,
}

/// Runs the trials on one hub, where every liar comes back as somebody else.
///
/// # Errors
/// An honest worker that is shut out; a wrong text with `--verify`.
pub(super) async fn table(site: &Site, args: &Args) -> anyhow::Result<()> {
    let model = site.model(args.layers)?;
    let mut more = vec!["--swarm-replicas", "2"];
    if args.verify {
        more.push("--swarm-verify");
    }
    if args.fast {
        more.push("--swarm-fast");
    }
    let hub = Hub::start(site, &model, &more)?;
    let n_token = 32;
    let expected = tokio::task::block_in_place(|| complete(&hub.http, PROMPT, n_token, |_| Ok(())))?;
    let mut lab = Workers::start(site, &hub.swarm, args.workers, (Delay::Constant(0.0), false), 1).await?;
    ready(site, &hub.swarm, args.workers, 2)?;
    println!(
        "{} layers, {} workers, 2 of each expert, {} texts of {n_token} tokens{}; {}\n",
        args.layers,
        args.workers,
        args.seeds,
        if args.verify { ", every answer confirmed" } else { "" },
        load()
    );
    println!(
        "| lie | texts | caught within 10 tokens | mean tokens | most | mean lies | wrong texts |\n\
         |---|---:|---:|---:|---:|---:|---:|"
    );
    let n = args.seeds / args.kind.len() as u64;
    let (mut seed, mut n_liar, mut n_wrong) = (0, 0, 0);
    for &lie in &args.kind {
        let mut trials = Vec::new();
        for _ in 0..n {
            seed += 1;
            let trial = trial(site, &hub, &mut lab, (lie, seed, n_token), &expected.text);
            trials.push(trial.with_context(|| format!("{lie:?}, seed {seed}"))?);
            n_liar += u64::from(lie != Lie::Nan && trials.last().is_some_and(|t| t.tokens.is_some()));
            ready(site, &hub.swarm, args.workers, 2)?;
        }
        let caught: Vec<f64> = trials.iter().filter_map(|t| t.tokens).map(|n| n as f64).collect();
        let within = caught.iter().filter(|n| **n <= 10.0).count();
        let lies: Vec<f64> = trials.iter().map(|t| t.lies as f64).collect();
        let wrong = trials.iter().filter(|t| t.is_wrong).count();
        let told = if args.fast { "not counted".to_owned() } else { wrong.to_string() };
        n_wrong += if args.fast { 0 } else { wrong };
        println!(
            "| {lie:?} | {n} | {within} | {:.1} | {} | {:.1} | {told} |",
            mean(&caught),
            quantile(&caught, 1.0),
            mean(&lies)
        );
    }
    let (quarantined, tasks) = (hub.counter(site, "quarantined")?, hub.counter(site, "tasks")?);
    println!("\n{quarantined} workers shut out, {n_liar} of them liars, in {tasks} tasks");
    ensure!(quarantined == n_liar, "an honest worker is shut out");
    ensure!(!args.verify || n_wrong == 0, "wrong texts in spite of --verify");
    Ok(())
}

/// One text, in which a worker begins to lie; afterwards it is honest, and somebody else if it was shut out.
fn trial(
    site: &Site,
    hub: &Hub,
    lab: &mut Workers,
    (lie, seed, n_token): (Lie, u64, usize),
    expected: &str,
) -> anyhow::Result<Trial> {
    let mut random = Random(seed);
    let victim = (random.next() % lab.proxies.len() as u64) as usize;
    let faults = lab.proxies[victim].faults.clone();
    let (at, before) = ((random.next() % 8) as usize, faults.n_lie.load(Ordering::Relaxed));
    faults.forget_close();
    let (mut first, mut tokens) = (None, None);
    let reply = tokio::task::block_in_place(|| {
        complete(&hub.http, PROMPT, n_token, |i| {
            if i == at {
                faults.set_lie(Some(lie));
            }
            if first.is_none() && faults.n_lie.load(Ordering::Relaxed) > before {
                first = Some(i);
            }
            if let (Some(first), None, Some(_)) = (first, tokens, faults.closed()) {
                tokens = Some(i - first);
            }
            Ok(())
        })
    })?;
    faults.set_lie(None);
    let lies = faults.n_lie.load(Ordering::Relaxed) - before;
    ensure!(lies > 0, "the worker got no task");
    ensure!(reply.error.is_none(), "the text fails: {:?}", reply.error);
    lab.restart(site, victim, true)?;
    Ok(Trial { tokens, lies, is_wrong: reply.text != expected })
}
