//! Tables of the paper, and others, as measurements of real processes.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use chaski_wire::{Body, Dtype, FailCode, Frame, Pair, Rows, Run, Task};

use super::answer::{Ask, Counts, answer};
use super::delay::{Delay, Random};
use super::lab::{Hub, Workers, mean, quantile, ready};
use super::model::phase;
use super::proxy::TAP;
use super::site::{Site, load};

/// Values of a row of the model of `chaski synth --preset tiny-moe`.
const WIDTH: u32 = 256;
/// Time of a phase after which the table fails.
const LATE: Duration = Duration::from_secs(10);

/// Table 1: phases of `k` experts, each asked of `h` workers, with a frame for each.
pub(super) async fn table1(
    site: &Site,
    delay: Delay,
    hedges: &[usize],
    (workers, k, phases, seed): (usize, usize, usize, u64),
) -> anyhow::Result<()> {
    ensure!(hedges.iter().all(|h| (1..=4).contains(h) && *h <= workers), "h is 1 to 4, at most the workers");
    let model = site.model(4)?;
    let n_replica = workers.to_string();
    ensure!(workers <= 8, "a unit has at most 8 workers");
    let hub = Hub::start(site, &model, &["--swarm-replicas", &n_replica])?;
    let mut lab = Workers::start(site, &hub.swarm, workers, (delay, false), seed).await?;
    ready(site, &hub.swarm, workers, workers as u64)?;
    println!(
        "phases of {k} experts over {workers} workers, {phases} each, {delay:?}, seed {seed}; {}\n",
        load()
    );
    println!("| h | mean ms | equation 18 | difference | p50 | p99 |\n|---:|---:|---:|---:|---:|---:|");
    let mut next = TAP;
    for &h in hedges {
        let mut times = Vec::new();
        for _ in 0..phases {
            times.push(one_phase(&mut lab, (k, h), &mut next).await?);
        }
        let found = mean(&times);
        let expected = match delay {
            Delay::Lognormal { median, sigma } => phase(h as u32, k as u32, median, sigma),
            _ => f64::NAN,
        };
        let difference = 100.0 * (found / expected - 1.0);
        let (p50, p99) = (quantile(&times, 0.5), quantile(&times, 0.99));
        println!("| {h} | {found:.2} | {expected:.2} | {difference:+.1} % | {p50:.1} | {p99:.1} |");
    }
    Ok(())
}

/// Sends the frames of a phase, and waits for the first answer of each expert: milliseconds.
async fn one_phase(lab: &mut Workers, (k, h): (usize, usize), next: &mut u64) -> anyhow::Result<f64> {
    let rows = Rows::encode(WIDTH, &[0.5; WIDTH as usize], Dtype::F32)?;
    let n_worker = lab.proxies.len();
    let mut expert_of = HashMap::new();
    let begin = Instant::now();
    let frame = |task: u64, expert: usize| {
        let task_of_one = Task {
            runs: vec![Run { expert: expert as u16, n: 1 }],
            pairs: vec![Pair { column: 0, slot: 0 }],
            weights: None,
            rows: rows.clone(),
            answer: Dtype::F32,
            budget: 0,
            step_columns: 1,
        };
        Frame { task, epoch: 1, layer: 0, body: Body::Task(task_of_one) }
    };
    for hedge in 0..h {
        for expert in 0..k {
            // Every worker gets `h` of them.
            let worker = (expert + hedge) % n_worker;
            expert_of.insert(*next, (expert, worker));
            lab.proxies[worker].send(&frame(*next, expert))?;
            *next += 1;
        }
    }
    let mut is_open = vec![true; k];
    while is_open.contains(&true) {
        let answer = tokio::time::timeout(LATE, lab.answers.recv()).await.context("no answer within 10 s")?;
        let Frame { task, body, .. } = answer.context("the proxies have ended")?;
        match (body, expert_of.get(&task)) {
            (Body::Result { .. }, Some((expert, _))) => is_open[*expert] = false,
            // A worker that is behind takes it a moment later.
            (Body::Fail(fail), Some(&(expert, worker))) if fail.code == FailCode::BUSY => {
                expert_of.insert(*next, (expert, worker));
                lab.proxies[worker].send(&frame(*next, expert))?;
                *next += 1;
            }
            // Late answers of the phase before.
            (_, None) => {}
            (Body::Fail(fail), Some(_)) => bail!("a worker answers {:?}: {}", fail.code, fail.text),
            (body, Some(_)) => bail!("a worker answers {:?}", body.kind()),
        }
    }
    Ok(begin.elapsed().as_secs_f64() * 1e3)
}

/// Table 3: the time of a token by the round trip.
pub(super) async fn table3(site: &Site, rtts: &[f64], tokens: usize) -> anyhow::Result<()> {
    const LAYERS: f64 = 48.0;
    let model = site.model(48)?;
    println!("48 layers, one worker, {tokens} tokens; {}\n", load());
    println!(
        "| round trip ms | token ms | 48 (c + R) | difference | frames a token | bytes to the worker | from it |\n\
         |---:|---:|---:|---:|---:|---:|---:|"
    );
    let mut c = None;
    for rtt in std::iter::once(&0.0).chain(rtts) {
        let run = answer(
            site,
            &Ask {
                model: &model,
                workers: 1,
                replicas: 1,
                delay: Delay::Constant(*rtt),
                is_serial: false,
                tokens,
                seed: 1,
                more: &[],
            },
            |_, _| Ok(()),
        )
        .await?;
        let found = quantile(&run.gaps, 0.5);
        let c = *c.get_or_insert(found / LAYERS);
        let expected = LAYERS * (c + rtt);
        let difference = 100.0 * (found / expected - 1.0);
        // The prompt is a step as well.
        let per_token = |n: &std::sync::atomic::AtomicU64| n.load(Relaxed) / tokens as u64;
        let counters = &run.counters;
        let [to, from, frames] =
            [&counters.to_workers, &counters.from_workers, &counters.n_frame].map(per_token);
        println!("| {rtt} | {found:.2} | {expected:.2} | {difference:+.1} % | {frames} | {to} | {from} |");
    }
    Ok(())
}

/// Tails of tokens under a policy of hedging.
pub(super) async fn tail(
    site: &Site,
    delay: Delay,
    policies: &[String],
    (workers, layers, tokens): (usize, u32, usize),
) -> anyhow::Result<()> {
    let model = site.model(layers)?;
    println!(
        "{layers} layers, {workers} workers, 2 of each expert, {tokens} tokens, {delay:?}; {}\n",
        load()
    );
    println!(
        "| hedging | p50 ms | p95 | p99 | tasks a call | extra tasks | late | won | at once |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    let mut text = None;
    for policy in policies {
        let run = answer(
            site,
            &Ask {
                model: &model,
                workers,
                replicas: 2,
                delay,
                is_serial: false,
                tokens,
                seed: 1,
                more: &["--swarm-hedge", policy],
            },
            |_, _| Ok(()),
        )
        .await?;
        let Counts { calls, tasks, late, won, at_once, .. } = run.counts;
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|q| quantile(&run.gaps, q));
        println!(
            "| {policy} | {p50:.1} | {p95:.1} | {p99:.1} | {:.3} | {:.1} % | {late} | {won} | {at_once} |",
            tasks / calls,
            100.0 * (late + at_once) / (tasks - late - at_once)
        );
        ensure!(*text.get_or_insert(run.text.clone()) == run.text, "the text has changed");
    }
    Ok(())
}

/// Workers that are killed in the midst of an answer: the text stays, and tokens are late by how much?
pub(super) async fn kill(
    site: &Site,
    (workers, layers, tokens, seeds): (usize, u32, usize, u64),
) -> anyhow::Result<()> {
    let model = site.model(layers)?;
    let ask = Ask {
        model: &model,
        workers,
        replicas: 2,
        delay: Delay::Constant(0.0),
        is_serial: false,
        tokens,
        seed: 0,
        more: &[],
    };
    let quiet = answer(site, &ask, |_, _| Ok(())).await?;
    let p99 = quantile(&quiet.gaps, 0.99);
    println!(
        "{layers} layers, {workers} workers, 2 of each expert, {tokens} tokens, {seeds} seeds; {}\n",
        load()
    );
    println!("without a fault: p50 {:.2} ms, p99 {p99:.2} ms a token", quantile(&quiet.gaps, 0.5));
    let mut hit = Vec::new();
    let mut n_changed = 0;
    for seed in 1..=seeds {
        let mut random = Random(seed);
        let at = (random.next() % (tokens as u64 / 2)) as usize + tokens / 4;
        let victim = (random.next() % workers as u64) as usize;
        // In the midst of a layer of the next token.
        let pause = Duration::from_secs_f64(random.unit() * quantile(&quiet.gaps, 0.5) / 1e3);
        let ask = Ask { seed, ..ask };
        let run = answer(site, &ask, |i, lab| {
            if i == at {
                std::thread::sleep(pause);
                lab.processes[victim].kill()?;
            }
            Ok(())
        });
        let run = run.await.with_context(|| format!("seed {seed}"))?;
        n_changed += usize::from(run.text != quiet.text);
        // The reader slept for a part of the token.
        hit.push(run.gaps[at..(at + 3).min(run.gaps.len())].iter().copied().fold(0.0, f64::max));
    }
    let late = hit.iter().filter(|ms| **ms > 3.0 * p99 + 50.0).count();
    println!("texts that changed: {n_changed} of {seeds}");
    println!(
        "the slowest token around the kill: p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms; over 3 p99 + 50 ms: {late}",
        quantile(&hit, 0.5),
        quantile(&hit, 0.99),
        quantile(&hit, 1.0)
    );
    ensure!(n_changed == 0, "texts have changed");
    Ok(())
}
