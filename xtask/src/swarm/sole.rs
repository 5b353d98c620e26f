//! The only holder of experts is killed: with the model's file the hub goes on alone, without it the text fails with an
//! error that says so, and goes on when a worker is there again.

use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::delay::Delay;
use super::http::{Reply, complete};
use super::lab::{Hub, Workers, quantile, ready};
use super::site::{Site, load};

const PROMPT: &str = "Once upon a time";
/// Seconds within which a text that nobody can serve fails.
const MOST: f64 = 31.0;

/// Runs both cases.
///
/// # Errors
/// Another text, or a failure that is none.
pub(super) async fn table(site: &Site, (layers, tokens): (u32, usize)) -> anyhow::Result<()> {
    let model = site.model(layers)?;
    println!(
        "{layers} layers, 2 workers, each the only holder of its experts, {tokens} tokens; {}\n",
        load()
    );
    let alone = Hub::start(site, &model, &[])?;
    let expected = tokio::task::block_in_place(|| complete(&alone.http, PROMPT, tokens, |_| Ok(())))?;
    drop(alone);

    let hub = Hub::start(site, &model, &["--swarm-replicas", "1", "--experts-away"])?;
    let mut lab = Workers::start(site, &hub.swarm, 2, (Delay::Constant(0.0), false), 1).await?;
    ready(site, &hub.swarm, 2, 1)?;
    let reply = ask(&hub, tokens, |lab| lab.processes[0].kill(), &mut lab)?;
    ensure!(reply.text == expected.text, "with the file: the text differs, {:?}", reply.error);
    let local = hub.counter(site, "local")?;
    ensure!(local > 0, "the hub has computed nothing");
    println!(
        "with the file: the same text; {local} tasks by the hub; p50 {:.1} ms, most {:.1} ms a token",
        quantile(&reply.gaps, 0.5),
        quantile(&reply.gaps, 1.0)
    );
    drop((hub, lab));

    let hub = Hub::start(site, &model, &["--swarm-replicas", "1", "--experts-away", "--swarm-only"])?;
    let mut lab = Workers::start(site, &hub.swarm, 2, (Delay::Constant(0.0), false), 2).await?;
    ready(site, &hub.swarm, 2, 1)?;
    // Both: one that is left would load what the other held.
    let killed = std::cell::Cell::new(Instant::now());
    let kill = |lab: &mut Workers| {
        killed.set(Instant::now());
        lab.processes.iter_mut().try_for_each(super::site::Process::kill)
    };
    let failed = ask(&hub, tokens, kill, &mut lab)?;
    let seconds = killed.get().elapsed().as_secs_f64();
    let error = failed.error.context("without the file: the text does not fail")?;
    ensure!(error.contains("no worker holds expert"), "without the file: {error}");
    ensure!(seconds <= MOST, "without the file: the error comes after {seconds:.1} s");
    ensure!(expected.text.starts_with(&failed.text), "without the file: the text before the error differs");
    println!("without the file: after {seconds:.1} s {error}");
    (0..2).try_for_each(|i| lab.restart(site, i, false))?;
    ready(site, &hub.swarm, 2, 1)?;
    let again = ask(&hub, tokens, |_| Ok(()), &mut lab)?;
    ensure!(again.text == expected.text, "after a worker has joined: the text differs, {:?}", again.error);
    println!("after workers have joined: the same text");
    Ok(())
}

/// A text, in whose midst something happens.
fn ask(
    hub: &Hub,
    tokens: usize,
    event: impl Fn(&mut Workers) -> anyhow::Result<()>,
    lab: &mut Workers,
) -> anyhow::Result<Reply> {
    tokio::task::block_in_place(|| {
        complete(&hub.http, PROMPT, tokens, |i| if i == tokens / 2 { event(lab) } else { Ok(()) })
    })
}
