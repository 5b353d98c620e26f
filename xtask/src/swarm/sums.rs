//! Tokens, prompts and bytes of a model with sums at the workers and without, side by side.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::Context as _;
use serde_json::Value;

use super::answer::{Ask, answer};
use super::delay::Delay;
use super::lab::quantile;
use super::same::MODES;
use super::site::{Process, Site, load};

/// Options of the table.
#[derive(clap::Args)]
pub(super) struct Args {
    #[arg(long, value_delimiter = ',', default_value = "1,2,4")]
    workers: Vec<usize>,
    /// Workers that hold each expert
    #[arg(long, default_value_t = 1)]
    r: usize,
    #[arg(long, default_value_t = 8)]
    layers: u32,
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Tokens of a prompt
    #[arg(long, default_value_t = 256)]
    prompt: usize,
    /// Round trip in milliseconds
    #[arg(long, default_value_t = 0.0)]
    rtt: f64,
    /// Rounds over all modes; times are the medians
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Measurements of a mode: medians are taken over rounds.
#[derive(Default)]
struct Found {
    /// Milliseconds of a token.
    token: Vec<f64>,
    /// Tokens per second of a prompt.
    prompt: Vec<f64>,
    bytes: u64,
    frames: u64,
}

/// Measures all modes in turns.
///
/// # Errors
/// A process that does not do what it should.
pub(super) async fn table(site: &Site, args: &Args) -> anyhow::Result<()> {
    let model = site.model(args.layers)?;
    println!(
        "{} layers, {} of each expert, {} tokens, prompts of {}, round trip {} ms, {} rounds; {}\n",
        args.layers,
        args.r,
        args.tokens,
        args.prompt,
        args.rtt,
        args.rounds,
        load()
    );
    println!(
        "| workers | mode | token, p50 ms | prompt, tokens/s | frames a token | bytes a token | over a row each |\n\
         |---:|---|---:|---:|---:|---:|---:|"
    );
    for &workers in &args.workers {
        let mut found: [Found; MODES.len()] = Default::default();
        for _ in 0..args.rounds {
            for ((_, more), found) in MODES.iter().zip(&mut found) {
                measure(site, &model, args, (workers, more), found).await?;
            }
        }
        let of_rows = found[MODES.len() - 1].bytes as f64;
        for ((mode, _), f) in MODES.iter().zip(&found) {
            let [token, prompt] = [&f.token, &f.prompt].map(|v| quantile(v, 0.5));
            println!(
                "| {workers} | {mode} | {token:.2} | {prompt:.0} | {} | {} | {:.2} |",
                f.frames,
                f.bytes,
                f.bytes as f64 / of_rows
            );
        }
    }
    Ok(())
}

async fn measure(
    site: &Site,
    model: &str,
    args: &Args,
    (workers, more): (usize, &[&str]),
    found: &mut Found,
) -> anyhow::Result<()> {
    let more = [more, &["--experts-away", "--swarm-hedge", "never"]].concat();
    let ask = Ask {
        model,
        workers,
        replicas: args.r,
        delay: Delay::Constant(args.rtt),
        is_serial: false,
        tokens: args.tokens,
        seed: 1,
        more: &more,
    };
    let run = answer(site, &ask, |_, _| Ok(())).await?;
    found.token.push(quantile(&run.gaps, 0.5));
    let counters = &run.counters;
    // The prompt of a few tokens is a step as well.
    let n_step = args.tokens as u64;
    found.bytes = (counters.to_workers.load(Relaxed) + counters.from_workers.load(Relaxed)) / n_step;
    found.frames = counters.n_frame.load(Relaxed) / n_step;
    found.prompt.push(prompt(site, model, args, (workers, &more))?);
    Ok(())
}

/// Tokens per second of a prompt, without a proxy.
fn prompt(site: &Site, model: &str, args: &Args, (workers, more): (usize, &[&str])) -> anyhow::Result<f64> {
    let [n, workers_text, replicas] = [args.prompt, workers, args.r].map(|n| n.to_string());
    let mut words =
        vec!["bench", model, "--device", "cpu", "-t", "1", "-p", &n, "-n", "0", "-r", "2", "-o", "json"];
    words.extend(["--swarm", "127.0.0.1:0", "--swarm-workers", &workers_text, "--swarm-replicas", &replicas]);
    words.extend(more);
    let hub = Process::start(&site.program, &words)?;
    let address = hub.after("workers join at ws://")?;
    let list = (0..workers).map(|i| site.worker(&address, i)).collect::<anyhow::Result<Vec<_>>>()?;
    let text = hub.output()?;
    drop(list);
    let value: Value = serde_json::from_str(&text).with_context(|| format!("no JSON: {text}"))?;
    value[0]["avg_ts"].as_f64().with_context(|| format!("no rate: {value:#}"))
}
