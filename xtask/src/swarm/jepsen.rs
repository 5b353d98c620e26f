//! Texts amid faults of every kind: they stay the same, and the hub's memory does, too.

use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::delay::{Delay, Random};
use super::faults::{Faults, Lie, Once};
use super::http::complete;
use super::lab::{Hub, Workers, quantile, ready};
use super::site::{Site, load};

const PROMPT: &str = "Once upon a time";

/// Options of the table.
#[derive(clap::Args)]
pub(super) struct Args {
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    #[arg(long, default_value_t = 3)]
    workers: usize,
    #[arg(long, default_value_t = 4)]
    layers: u32,
    /// Workers lie, too, and every answer is confirmed before it is used
    #[arg(long)]
    verify: bool,
    /// After the texts, this many tokens without faults, in which the hub's memory must not grow by 1 %
    #[arg(long, default_value_t = 0)]
    flat: usize,
}

/// Something that goes wrong at one worker.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Kill,
    Stop,
    CutTo,
    CutFrom,
    Slow,
    Narrow,
    BitFlip,
    Truncated,
    Oversize,
    WrongEpoch,
    Twice,
    Nan,
    SlowHandshakes,
    HubRestart,
    LieZero,
    LieFactor,
    LieStale,
}

/// All events; the last three are lies.
const EVENTS: [Event; 17] = [
    Event::Kill,
    Event::Stop,
    Event::CutTo,
    Event::CutFrom,
    Event::Slow,
    Event::Narrow,
    Event::BitFlip,
    Event::Truncated,
    Event::Oversize,
    Event::WrongEpoch,
    Event::Twice,
    Event::Nan,
    Event::SlowHandshakes,
    Event::HubRestart,
    Event::LieZero,
    Event::LieFactor,
    Event::LieStale,
];
const N_LIE: usize = 3;

/// The hub, its workers, and what is broken.
struct World<'a> {
    site: &'a Site,
    model: String,
    more: Vec<&'a str>,
    hub: Hub,
    lab: Workers,
    /// Connections that say nothing.
    idle: Vec<TcpStream>,
}

/// Runs the texts.
///
/// # Errors
/// A text that differs, a request that fails without the hub's end, memory that grows.
pub(super) async fn table(site: &Site, args: &Args) -> anyhow::Result<()> {
    let model = site.model(args.layers)?;
    let mut more = vec!["--swarm-replicas", "2"];
    if args.verify {
        more.push("--swarm-verify");
    }
    let hub = Hub::start(site, &model, &more)?;
    let expected = tokio::task::block_in_place(|| complete(&hub.http, PROMPT, args.tokens, |_| Ok(())))?;
    let lab = Workers::start(site, &hub.swarm, args.workers, (Delay::Constant(0.0), false), 1).await?;
    ready(site, &hub.swarm, args.workers, 2)?;
    println!(
        "{} layers, {} workers, 2 of each expert, {} texts of {} tokens{}; {}\n",
        args.layers,
        args.workers,
        args.seeds,
        args.tokens,
        if args.verify { ", every answer confirmed" } else { "" },
        load()
    );
    let mut world = World { site, model, more, hub, lab, idle: Vec::new() };
    let n_event = if args.verify { EVENTS.len() } else { EVENTS.len() - N_LIE };
    let (mut counts, mut slowest, mut n_failed) = ([0; EVENTS.len()], Vec::new(), 0);
    let mut worst = (0.0, String::new());
    for seed in 1..=args.seeds {
        let mut random = Random(seed);
        let kind = (random.next() % n_event as u64) as usize;
        let (event, victim) = (EVENTS[kind], (random.next() % args.workers as u64) as usize);
        let at = (random.next() % (args.tokens as u64 * 3 / 4)) as usize;
        counts[kind] += 1;
        let context = || format!("seed {seed}, {event:?}");
        let text = tokio::task::block_in_place(|| world.text(args.tokens, (event, victim, at)));
        let text = text.with_context(context)?;
        n_failed += usize::from(event == Event::HubRestart);
        slowest.push(text.slowest);
        if text.slowest > worst.0 {
            worst = (text.slowest, context());
        }
        ensure!(text.text == expected.text, "{}: the text differs", context());
        world.heal(event, victim).with_context(context)?;
        ready(site, &world.hub.swarm, args.workers, 2).with_context(context)?;
    }
    println!(
        "the same text in {} of {} ({n_failed} asked again, since the hub was killed)",
        args.seeds, args.seeds
    );
    println!(
        "the slowest token of a text: p50 {:.1} ms, p99 {:.1}, most {:.1} ({})",
        quantile(&slowest, 0.5),
        quantile(&slowest, 0.99),
        worst.0,
        worst.1
    );
    let counted: Vec<String> =
        EVENTS.iter().zip(counts).filter(|(_, n)| *n > 0).map(|(e, n)| format!("{e:?} {n}")).collect();
    println!("{}", counted.join(", "));
    if args.flat > 0 {
        tokio::task::block_in_place(|| flat(&world, args.flat, &expected.text, args.tokens))?;
    }
    Ok(())
}

/// A text, and its slowest token in milliseconds.
struct Text {
    text: String,
    slowest: f64,
}

impl World<'_> {
    /// A text in whose midst something goes wrong. One that ends with the hub is asked for again.
    fn text(&mut self, tokens: usize, (event, victim, at): (Event, usize, usize)) -> anyhow::Result<Text> {
        let http = self.hub.http.clone();
        let reply = complete(&http, PROMPT, tokens, |i| match i == at {
            true => self.begin(event, victim),
            false => Ok(()),
        });
        let reply = match reply {
            Err(_) if event == Event::HubRestart => {
                ready(self.site, &self.hub.swarm, self.lab.proxies.len(), 2)?;
                complete(&self.hub.http, PROMPT, tokens, |_| Ok(()))?
            }
            other => other?,
        };
        ensure!(reply.error.is_none(), "the text fails: {:?}", reply.error);
        Ok(Text { text: reply.text, slowest: quantile(&reply.gaps, 1.0) })
    }

    fn begin(&mut self, event: Event, victim: usize) -> anyhow::Result<()> {
        let faults = self.lab.proxies[victim].faults.clone();
        let set = |at: &std::sync::atomic::AtomicU64, v| at.store(v, std::sync::atomic::Ordering::Relaxed);
        let cut = |i: usize| faults.cut[i].store(true, std::sync::atomic::Ordering::Relaxed);
        let once = |faults: &Faults, once| faults.push(once);
        match event {
            Event::Kill => self.lab.processes[victim].kill()?,
            Event::Stop => self.lab.processes[victim].signal("STOP")?,
            Event::CutTo => cut(0),
            Event::CutFrom => cut(1),
            Event::Slow => set(&faults.slow, 10_000),
            Event::Narrow => set(&faults.rate, 10_000_000 / 8),
            Event::BitFlip => once(&faults, Once::BitFlip),
            Event::Truncated => once(&faults, Once::Truncated),
            Event::Oversize => once(&faults, Once::Oversize),
            Event::WrongEpoch => once(&faults, Once::WrongEpoch),
            Event::Twice => once(&faults, Once::Twice),
            Event::Nan => once(&faults, Once::Nan),
            Event::SlowHandshakes => {
                let connect = |_| TcpStream::connect(&self.hub.swarm);
                self.idle = (0..20).map(connect).collect::<Result<_, _>>()?;
            }
            Event::HubRestart => {
                self.hub.process.kill()?;
                self.hub = Hub::start(self.site, &self.model, &self.more)?;
                *self.lab.hub.lock().expect("nobody panics with it") = self.hub.swarm.clone();
            }
            Event::LieZero => faults.set_lie(Some(Lie::Zero)),
            Event::LieFactor => faults.set_lie(Some(Lie::Factor)),
            Event::LieStale => faults.set_lie(Some(Lie::Stale)),
        }
        Ok(())
    }

    /// Ends a fault. A worker that was shut out, or is gone, starts again.
    fn heal(&mut self, event: Event, victim: usize) -> anyhow::Result<()> {
        self.lab.proxies[victim].faults.heal();
        self.idle.clear();
        match event {
            Event::Kill => self.lab.restart(self.site, victim, false),
            Event::Stop => self.lab.processes[victim].signal("CONT"),
            Event::CutTo | Event::CutFrom => self.lab.restart(self.site, victim, false),
            Event::LieZero | Event::LieFactor | Event::LieStale => self.lab.restart(self.site, victim, true),
            _ => Ok(()),
        }
    }
}

/// Many tokens without faults: the hub's memory after a tenth of them and at the end.
fn flat(world: &World<'_>, n_token: usize, expected: &str, of_text: usize) -> anyhow::Result<()> {
    let (begin, texts) = (Instant::now(), n_token.div_ceil(of_text));
    let mut first = 0;
    for text in 0..texts {
        let reply = complete(&world.hub.http, PROMPT, of_text, |_| Ok(()))?;
        ensure!(reply.text == expected, "text {text} differs");
        if text == texts / 10 {
            first = world.hub.process.rss()?;
        }
    }
    let (last, tasks) = (world.hub.process.rss()?, world.hub.counter(world.site, "tasks")?);
    let growth = 100.0 * (last as f64 / first as f64 - 1.0);
    println!(
        "{} tokens more in {:.0} s: the hub has {:.1} MB after a tenth of them, {:.1} MB at the end ({growth:+.2} %); \
         {tasks} tasks, {} workers shut out",
        texts * of_text,
        begin.elapsed().as_secs_f64(),
        first as f64 / 1e6,
        last as f64 / 1e6,
        world.hub.counter(world.site, "quarantined")?
    );
    ensure!(growth <= 1.0, "the hub's memory grows");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lies_are_the_last_events() {
        let lies = &EVENTS[EVENTS.len() - N_LIE..];
        assert_eq!(lies, [Event::LieZero, Event::LieFactor, Event::LieStale]);
        let mut sorted = EVENTS.to_vec();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), EVENTS.len());
    }
}
