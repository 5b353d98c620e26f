//! Times of tokens with heavy and light tails, under load, and when workers die or stop: against the model's numbers
//! (latency_model.py, sections 6 and 6b).

use std::io::Write as _;
use std::time::Duration;

use chaski_swarm::{Hedging, HubConfig};

use crate::lab::{Machine, News};
use crate::network::{Delay, Network};
use crate::scene::{EVENT, Running, Scene, model, no_delay};

/// `full` with `CHASKI_TEST_FULL`.
fn more(default: u64, full: u64) -> u64 {
    if std::env::var_os("CHASKI_TEST_FULL").is_some() { full } else { default }
}

/// 48 layers, each of 5 tasks to distinct workers with a replica each; the delay is that of the answer.
fn tail(delay: Delay, hedging: Hedging) -> Running {
    let zero = Delay::Constant { ms: 0.0 };
    let network = Network { to_hub: delay, ..no_delay() };
    let machine = |host| Machine { service: zero, per_pair: Duration::ZERO, ..Machine::new(host, 1) };
    let scene = Scene {
        config: HubConfig { hedging, check: 0.0, ..HubConfig::new(model(1, 5, 1), 1) },
        network,
        machines: (0..10).map(machine).collect(),
        n_stream: 1,
        n_token: more(400, 4_000),
        n_used: 5,
        think: Duration::ZERO,
        n_layer: 48,
        seed: 6,
    };
    scene.run()
}

fn say(name: &str, run: &Running) {
    let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|q| run.quantile(q));
    let (extra, work) = (100.0 * run.extra(), 100.0 * run.extra_work());
    let stats = run.lab.hub.stats();
    let (late, at_once, suspect) = (stats.n_hedge_late, stats.n_hedge_at_once, stats.n_suspect);
    writeln!(
        std::io::stderr(),
        "{name}: p50 {p50:.1} p95 {p95:.1} p99 {p99:.1} ms, {extra:.1} % extra tasks ({late} late, {at_once} at once), \
         {work:.1} % extra work, {suspect} suspicions"
    )
    .expect("stderr can be written");
}

#[test]
fn a_heavy_tail_is_cut_for_few_extra_tasks() {
    let delay = Delay::Pareto { ms: 1.0, part: 0.02, least: 5.0, shape: 1.5 };
    let [none, auto, always] = [Hedging::Never, Hedging::Auto, Hedging::Always].map(|h| tail(delay, h));
    say("heavy tail, never", &none);
    say("heavy tail, auto", &auto);
    say("heavy tail, always", &always);
    assert!(auto.quantile(0.99) <= 0.25 * none.quantile(0.99));
    assert!(auto.extra() <= 0.06);
    assert!(always.quantile(0.99) <= 0.2 * none.quantile(0.99));
}

/// 48 layers of 4 units, of which a token uses 4 experts, on 8 workers: a task has several parts, whose other copies
/// are on different workers.
fn tail_of_parts(hedging: Hedging, seed: u64) -> Running {
    let zero = Delay::Constant { ms: 0.0 };
    let delay = Delay::Pareto { ms: 1.0, part: 0.02, least: 5.0, shape: 1.5 };
    let network = Network { to_hub: delay, ..no_delay() };
    let machine = |host| Machine { service: zero, per_pair: Duration::ZERO, ..Machine::new(host, 2_000) };
    let scene = Scene {
        config: HubConfig { hedging, check: 0.0, ..HubConfig::new(model(48, 32, 8), seed) },
        network,
        machines: (0..8).map(machine).collect(),
        n_stream: 1,
        n_token: more(400, 4_000),
        n_used: 4,
        think: Duration::from_micros(300),
        n_layer: 48,
        seed,
    };
    scene.run()
}

#[test]
fn a_heavy_tail_of_tasks_with_several_parts_is_cut_too() {
    for seed in 1..=3 {
        let [none, auto] = [Hedging::Never, Hedging::Auto].map(|hedging| tail_of_parts(hedging, seed));
        say("heavy tail of several parts, never", &none);
        say("heavy tail of several parts, auto", &auto);
        // The tail over the median, of which each policy has nearly the same.
        let over = |run: &Running| run.quantile(0.99) - run.quantile(0.5);
        assert!(over(&auto) <= 0.15 * over(&none));
        assert!(auto.extra() <= 0.06);
    }
}

#[test]
fn a_light_tail_is_noticed_and_idle_replicas_are_asked_at_once() {
    let delay = Delay::Lognormal { ms: 1.0, sigma: 0.5 };
    let [none, auto, always] = [Hedging::Never, Hedging::Auto, Hedging::Always].map(|h| tail(delay, h));
    say("light tail, never", &none);
    say("light tail, auto", &auto);
    say("light tail, always", &always);
    assert!(auto.quantile(0.99) <= 0.75 * none.quantile(0.99));
}

/// 8 workers with a queue each and services that stall, and as many sequences.
fn load(hedging: Hedging) -> Running {
    let half = Delay::Constant { ms: 0.15 };
    let service = Delay::Stalls { ms: 1.0, part: 0.03 };
    let machine = |host| Machine { service, per_pair: Duration::ZERO, ..Machine::new(host, 40) };
    let scene = Scene {
        config: HubConfig { hedging, check: 0.0, ..HubConfig::new(model(1, 128, 1), 2) },
        network: Network { to_worker: half, to_hub: half, is_ordered: true },
        machines: (0..8).map(machine).collect(),
        n_stream: 8,
        n_token: more(100, 1_000),
        n_used: 2,
        think: Duration::from_micros(100),
        n_layer: 48,
        seed: 8,
    };
    scene.run()
}

#[test]
fn hedges_help_under_load_too() {
    let [none, auto] = [Hedging::Never, Hedging::Auto].map(load);
    say("load, never", &none);
    say("load, auto", &auto);
    assert!(auto.quantile(0.5) <= none.quantile(0.5));
    assert!(auto.quantile(0.99) <= 0.9 * none.quantile(0.99));
    assert!(auto.extra_work() <= 0.05);
}

/// A swarm of 6 workers with two replicas, 24 layers, and an event in the middle.
fn disturbed(seed: u64, event: impl Fn(&mut Running)) -> (Running, f64) {
    let delay = Delay::Lognormal { ms: 0.2, sigma: 0.3 };
    let machine = |host| Machine { service: Delay::Exponential { ms: 0.1 }, ..Machine::new(host, 400) };
    let scene = Scene {
        config: HubConfig { check: 0.0, ..HubConfig::new(model(24, 16, 4), seed) },
        network: Network { to_worker: delay, to_hub: delay, is_ordered: true },
        machines: (0..6).map(machine).collect(),
        n_stream: 1,
        n_token: 80,
        n_used: 4,
        think: Duration::from_micros(50),
        n_layer: 24,
        seed,
    };
    let mut running = scene.begin();
    // Before the event, for the 99th percentile.
    while running.tokens.len() < 60 {
        running.step().expect("tokens are left");
    }
    let p99 = running.quantile(0.99);
    let within = Duration::from_micros(seed * 997 % 20_000);
    running.lab.note(within, EVENT);
    while let Some(news) = running.step() {
        if news.iter().any(|n| matches!(n, News::Note(EVENT))) {
            event(&mut running);
        }
    }
    assert!(running.wrong.is_empty());
    (running, p99)
}

/// Time of the slowest token after the first 60, in milliseconds.
fn slowest(running: &Running) -> f64 {
    running.tokens[60..].iter().map(|t| t.as_secs_f64() * 1e3).fold(0.0, f64::max)
}

#[test]
fn a_killed_worker_costs_less_than_three_percentiles_and_50_ms() {
    let mut most: f64 = 0.0;
    for seed in 0..more(40, 200) {
        let (mut running, p99) = disturbed(seed, |r| r.lab.kill(seed as usize % 6, false, None));
        let time = slowest(&running);
        assert!(time <= 3.0 * p99 + 50.0, "seed {seed}: {time:.1} ms, p99 {p99:.1}");
        most = most.max(time - p99);
        // Copies are back within 2 s beside the time of the loads.
        let end = running.lab.now + Duration::from_secs(2) + Duration::from_millis(5) * 96;
        while running.lab.step(end) {}
        let status = running.lab.hub.status();
        assert!(status.units.iter().all(|u| u.n_up >= 2), "seed {seed}: {status:?}");
    }
    writeln!(std::io::stderr(), "kill: the token that it hits takes at most {most:.1} ms more than p99")
        .expect("stderr can be written");
}

#[test]
fn a_stopped_worker_holds_no_token_up_for_100_ms() {
    let mut most: f64 = 0.0;
    for seed in 0..more(40, 200) {
        let time = Duration::from_millis(200 + seed * 997 % 4_800);
        let node = seed as usize % 6;
        let (mut running, p99) = disturbed(seed, |r| r.lab.stop(node, time));
        let slowest = slowest(&running);
        assert!(slowest <= 100.0 + 2.0 * p99, "seed {seed}: {slowest:.1} ms, p99 {p99:.1}");
        most = most.max(slowest - p99);
        // The worker is in service again soon after it goes on.
        let end = running.lab.now + time + Duration::from_secs(3);
        while running.lab.step(end) {}
        let status = running.lab.hub.status();
        assert!(
            status.workers.len() == 6 && status.workers.iter().all(|w| w.is_up),
            "seed {seed}: {status:?}"
        );
    }
    writeln!(std::io::stderr(), "stop: no token takes {most:.1} ms more than p99")
        .expect("stderr can be written");
}
