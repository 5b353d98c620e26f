//! Bytes on the wire: those of frames against the tables of docs/swarm.md, those of sockets against both.

use std::sync::atomic::Ordering::Relaxed;

use anyhow::ensure;

use super::answer::{Ask, answer};
use super::counters::Counters;
use super::delay::Delay;
use super::same::MODES;
use super::site::{Site, load};

/// Options of the table.
#[derive(clap::Args)]
pub(super) struct Args {
    #[arg(long, default_value_t = 48)]
    layers: u32,
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Greatest difference, as a part
    #[arg(long, default_value_t = 0.01)]
    most: f64,
}

/// Measures one worker that has everything, in all modes.
///
/// # Errors
/// Bytes that differ from the formula.
pub(super) async fn table(site: &Site, args: &Args) -> anyhow::Result<()> {
    let model = site.model(args.layers)?;
    println!("{} layers, one worker, {} tokens; {}\n", args.layers, args.tokens, load());
    println!(
        "| mode | tasks and answers | their bytes | of two | by the formula | difference | other frames, bytes | WebSocket \
         heads | sockets | difference |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for (mode, more) in MODES {
        let more = [more, &["--experts-away"]].concat();
        let ask = Ask {
            model: &model,
            workers: 1,
            replicas: 1,
            delay: Delay::Constant(0.0),
            is_serial: false,
            tokens: args.tokens,
            seed: 1,
            more: &more,
        };
        let run = answer(site, &ask, |_, _| Ok(())).await?;
        let Counters { n_data, data, formula, other, heads, socket, .. } = &*run.counters;
        let [n_data, data, formula, other, heads, socket] =
            [n_data, data, formula, other, heads, socket].map(|n| n.load(Relaxed));
        let off = |found: u64, expected: u64| found as f64 / expected as f64 - 1.0;
        let (frames, sockets) = (off(data, formula), off(socket, data + other + heads));
        println!(
            "| {mode} | {n_data} | {data} | {:.0} | {formula} | {:+.2} % | {other} | {heads} | {socket} | {:+.2} % |",
            2.0 * data as f64 / n_data as f64,
            100.0 * frames,
            100.0 * sockets
        );
        ensure!(frames.abs() <= args.most && sockets.abs() <= args.most, "bytes differ from the formula");
    }
    Ok(())
}
