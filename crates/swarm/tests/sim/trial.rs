//! A random swarm with random faults, from a seed: the invariants of every trial.

use std::time::Duration;

use chaski_swarm::{
    Bounds, CallError, CallId, Class, CloseReason, Hedging, HubConfig, LayerShape, ModelShape, Random,
};

use crate::engine::{Engine, Verdict};
use crate::lab::{Lab, Machine, News};
use crate::model::{LIES, Lie};
use crate::network::{Delay, Network};

/// Notes of the trial: streams that go on, and faults.
const FAULT: u64 = 1 << 32;

/// Errors of sums: two answers agree up to 5e-5.
const NMSE: f64 = 6e-5;
/// Faults end after so long; then all must come right again.
const FAULTS_END: Duration = Duration::from_secs(3);
/// Longest time that a trial may take in its own clock.
const END: Duration = Duration::from_secs(400);

/// Counts of hard situations: a test that never reaches them proves nothing.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) n_call: u64,
    pub(crate) n_task: u64,
    pub(crate) n_failed: u64,
    pub(crate) n_cancelled: u64,
    pub(crate) n_killed: u64,
    pub(crate) n_stopped: u64,
    pub(crate) n_cut: u64,
    pub(crate) n_hub_restart: u64,
    pub(crate) n_hedge_late: u64,
    pub(crate) n_hedge_at_once: u64,
    pub(crate) n_local: u64,
    pub(crate) n_suspect: u64,
    pub(crate) n_strike: u64,
    pub(crate) n_quarantined: u64,
    pub(crate) n_check: u64,
    pub(crate) n_refused: u64,
    pub(crate) n_drained: u64,
    pub(crate) n_silent: u64,
    pub(crate) n_canary: u64,
    pub(crate) n_sum: u64,
    pub(crate) n_split: u64,
}

/// A trial and what it has seen.
struct Trial<'a> {
    random: Random,
    lab: Lab,
    engine: Engine,
    config: HubConfig,
    n_class: u64,
    /// A worker that lies; all answers are verified then.
    liar: Option<usize>,
    think: Delay,
    seen: &'a mut Seen,
    /// Counters of hubs that were restarted.
    former: Vec<chaski_swarm::Stats>,
}

fn network(r: &mut Random) -> Network {
    let delay = |r: &mut Random| match r.below(4) {
        0 => Delay::Constant { ms: 0.3 },
        1 => Delay::Lognormal { ms: 0.5, sigma: 0.5 },
        2 => Delay::Pareto { ms: 0.5, part: 0.02, least: 5.0, shape: 1.5 },
        _ => Delay::Exponential { ms: 2.0 },
    };
    Network { to_worker: delay(r), to_hub: delay(r), is_ordered: r.below(8) > 0 }
}

fn shape(r: &mut Random) -> ModelShape {
    let n_layer = 1 + r.below(3) as u16;
    let n_expert = 2 + r.below(7) as u16;
    let layers =
        (0..n_layer).map(|layer| LayerShape { layer: 2 * layer, n_expert, expert_bytes: 10 }).collect();
    ModelShape { layers, width: 1 + r.below(3) as u32, block: 1 + r.below(u64::from(n_expert)) as u16 }
}

fn machine(r: &mut Random, host: u64, total: u64, n: u64, n_class: u64) -> Machine {
    // Mostly enough for all replicas.
    let memory = total * 4 / n.max(1) + r.below(total + 1);
    let rare = |r: &mut Random, p: f64| if r.below(6) == 0 { p } else { 0.0 };
    Machine {
        class: r.below(n_class),
        memory: if r.below(12) == 0 { memory / 4 } else { memory },
        service: if r.below(3) == 0 {
            Delay::Stalls { ms: 1.0, part: 0.03 }
        } else {
            Delay::Exponential { ms: 0.3 }
        },
        load: Duration::from_millis(1 + r.below(30)),
        corrupt: rare(r, 0.01),
        twice: rare(r, 0.05),
        wrong_epoch: rare(r, 0.01),
        load_fails: rare(r, 0.1),
        ..Machine::new(host, memory)
    }
}

impl<'a> Trial<'a> {
    fn new(seed: u64, seen: &'a mut Seen) -> Self {
        let mut r = Random::new(seed);
        let shape = shape(&mut r);
        // Of sums, as of other calls without exact bits, no class is asked.
        let is_summed = r.below(4) == 0;
        let n_class = if !is_summed && r.below(4) == 0 { 2 } else { 1 };
        let n = 1 + r.below(6);
        let total: u64 = shape.units().map(|u| shape.bytes(u)).sum();
        let is_shared = r.below(5) == 0;
        let mut machines: Vec<Machine> =
            (0..n).map(|i| machine(&mut r, if is_shared { i / 2 } else { i }, total, n, n_class)).collect();
        let is_local = r.below(2) == 0;
        // A liar needs two honest hosts, or the hub, that can tell.
        let can_tell = is_local || (!is_shared && n >= 4 && n_class == 1);
        let liar = (can_tell && r.below(4) == 0).then(|| r.below(n) as usize);
        if let Some(liar) = liar {
            // A comparison of values does not see a bit.
            let lies: Vec<Lie> = LIES.into_iter().filter(|lie| !is_summed || *lie != Lie::Flip).collect();
            machines[liar].lie = Some(lies[r.below(lies.len() as u64) as usize]);
            machines[liar].lies_in = if r.below(2) == 0 { 1.0 } else { 0.2 };
        }
        let hedging = [Hedging::Auto, Hedging::Auto, Hedging::Never, Hedging::Always][r.below(4) as usize];
        let config = HubConfig {
            replicas: if liar.is_some() { 3 } else { 1 + r.below(3) as usize },
            // A liar may change a single bit.
            exact: !is_summed && (n_class > 1 || liar.is_some() || r.below(4) > 0),
            sums: is_summed,
            local: is_local.then(|| Class(r.below(n_class))),
            hedging,
            check: [0.0, 0.01, 0.2][r.below(3) as usize],
            verify_all: liar.is_some(),
            bounds: Bounds { n_call: 8, ..Bounds::default() },
            ..HubConfig::new(shape.clone(), r.bits())
        };
        let n_stream = 1 + r.below(3) as usize;
        let (n_token, n_used, n_column) = (6 + r.below(14), 1 + r.below(3), 1 + r.below(3));
        let engine = Engine::new(shape, n_stream, n_token, n_used, n_column, seed);
        let think = Delay::Exponential { ms: [0.5, 10.0, 40.0][r.below(3) as usize] };
        let network = network(&mut r);
        let lab = Lab::new(config.clone(), network, machines, seed);
        Self { random: r, lab, engine, config, n_class, liar, think, seen, former: Vec::new() }
    }

    fn run(&mut self) {
        for stream in 0..self.engine.streams.len() {
            let after = self.think.draw(&mut self.random);
            self.lab.note(after, stream as u64);
        }
        if self.random.below(6) > 0 {
            self.next_fault();
        }
        while !self.is_done() {
            assert!(
                self.lab.step(END),
                "calls without an answer: {:?}, {:#?}",
                self.engine.asked,
                self.lab.hub.status()
            );
            self.take_news();
            let most_parts = 8;
            self.lab.check_bounds(self.config.bounds.n_call, most_parts);
        }
        self.settle();
        self.conclude();
    }

    fn is_done(&self) -> bool {
        self.engine.streams.iter().all(|s| s.is_done)
    }

    fn take_news(&mut self) {
        for news in std::mem::take(&mut self.lab.news) {
            match news {
                News::Note(note) if note >= FAULT => self.fault(),
                News::Note(stream) => self.ask(stream as usize),
                News::Complete(id, rows) => self.completed(id, &rows),
                News::Fail(id, error) => self.failed(id, &error),
                News::Tainted(worker, since) => {
                    assert!(since.is_none_or(|call| self.engine.is_named(call)), "{since:?} was never asked");
                    assert_eq!(Some(worker.0 as usize), self.liar, "an honest worker is in quarantine");
                }
                News::Undecided => assert!(self.liar.is_some(), "honest workers disagree"),
                News::Closed(worker, CloseReason::Quarantined) => {
                    assert_eq!(Some(worker.0 as usize), self.liar, "an honest worker is in quarantine");
                }
                News::Closed(_, reason) => {
                    self.seen.n_drained += u64::from(reason == CloseReason::Drained);
                    self.seen.n_silent += u64::from(reason == CloseReason::Silent);
                }
            }
        }
    }

    fn ask(&mut self, stream: usize) {
        if self.engine.streams[stream].is_done || self.engine.asked.values().any(|a| a.stream == stream) {
            return;
        }
        let call = self.engine.ask(self.lab.now, stream);
        let id = call.id;
        self.seen.n_call += 1;
        self.lab.call(call);
        // The engine changes its mind now and then.
        if self.random.below(50) == 0 && self.engine.asked.contains_key(&id) && self.lab.news.is_empty() {
            self.lab.cancel(id);
            self.engine.asked.remove(&id);
            self.seen.n_cancelled += 1;
            self.lab.note(Duration::from_millis(1), stream as u64);
        }
    }

    fn completed(&mut self, id: CallId, rows: &[f32]) {
        let asked = self.engine.take(id);
        let verdict = match self.config.sums {
            true => self.engine.verdict_of_sums(&asked, rows, NMSE),
            false => self.engine.verdict(&asked, rows, self.n_class),
        };
        match verdict {
            Verdict::Right(class) => {
                let local = self.config.local.filter(|_| self.config.exact);
                assert!(
                    local.is_none_or(|c| c.0 == class),
                    "{id:?} has the bits of another class than the hub's"
                );
            }
            Verdict::Wrong => panic!("{id:?}: wrong rows for {asked:?}"),
        }
        self.engine.advance(asked.stream);
        let after = self.think.draw(&mut self.random);
        self.lab.note(after, asked.stream as u64);
    }

    fn failed(&mut self, id: CallId, error: &CallError) {
        let asked = self.engine.take(id);
        self.seen.n_failed += 1;
        match error {
            CallError::NoHolder { waited, .. } => {
                assert!(*waited >= self.config.bounds.orphan, "{error}: too soon");
                let is_alone = self.config.local.is_none() || self.config.verify_all;
                assert!(is_alone, "{error}, though the hub can make it");
                let bound = self.config.bounds.orphan + FAULTS_END + Duration::from_secs(12);
                assert!(self.lab.now - asked.since <= bound, "{error}: too late");
            }
            other => panic!("{other}"),
        }
        // The sequence is kept: the same step again, with what it needs added.
        if self.lab.now > FAULTS_END + Duration::from_secs(60) {
            let total: u64 = self.engine.shape.units().map(|u| self.engine.shape.bytes(u)).sum();
            let class = self.config.local.map_or(self.random.below(self.n_class), |c| c.0);
            let host = 1000 + self.lab.n_node() as u64;
            self.lab.add(Machine { class, ..Machine::new(host, 2 * total) });
        }
        self.lab.note(Duration::from_millis(100), asked.stream as u64);
    }

    fn next_fault(&mut self) {
        let after = Delay::Exponential { ms: 200.0 }.draw(&mut self.random);
        if self.lab.now + after < FAULTS_END {
            self.lab.note(after, FAULT);
        }
    }

    fn fault(&mut self) {
        self.next_fault();
        let r = &mut self.random;
        let node = r.below(self.lab.n_node() as u64) as usize;
        let ms = |r: &mut Random, most| Duration::from_millis(1 + r.below(most));
        match r.below(12) {
            0..=2 => {
                let restart = (r.below(3) > 0).then(|| ms(r, 1500));
                let silent = r.below(4) == 0;
                if self.lab.is_alive(node) {
                    self.seen.n_killed += 1;
                    self.lab.kill(node, silent, restart);
                }
            }
            3..=4 => {
                let time = if r.below(3) == 0 { ms(r, 5000) } else { ms(r, 400) };
                self.seen.n_stopped += 1;
                self.lab.stop(node, time);
            }
            5..=6 => {
                let time = if r.below(4) == 0 { ms(r, 4000) } else { ms(r, 300) };
                let way = r.below(2) as usize;
                self.seen.n_cut += 1;
                self.lab.cut(node, way, time);
            }
            7 => {
                let total: u64 = self.engine.shape.units().map(|u| self.engine.shape.bytes(u)).sum();
                if self.lab.n_node() < 9 {
                    let host = 100 + self.lab.n_node() as u64;
                    let added = machine(r, host, total, 3, self.n_class);
                    self.lab.add(added);
                }
            }
            8 => self.lab.leave(node),
            9 => {
                let visible = r.below(2) == 0;
                self.lab.show(node, visible);
            }
            10 => {
                let factor = [0.1, 3.0, 10.0][r.below(3) as usize];
                let machine = self.lab.machine(node);
                machine.per_pair = machine.per_pair.mul_f64(factor);
            }
            _ if r.below(3) == 0 => {
                self.seen.n_hub_restart += 1;
                self.former.push(self.lab.hub.stats());
                self.lab.restart_hub();
                // The engine asks again: calls of the former hub have no answer.
                let asked = std::mem::take(&mut self.engine.asked);
                for asked in asked.into_values() {
                    self.lab.note(Duration::from_millis(2), asked.stream as u64);
                }
            }
            _ => {}
        }
    }

    /// Without calls and faults all tables become empty, and every unit that has room is held.
    fn settle(&mut self) {
        while self.lab.step(FAULTS_END) {
            self.take_news();
        }
        for node in 0..self.lab.n_node() {
            let machine = self.lab.machine(node);
            (machine.corrupt, machine.wrong_epoch, machine.load_fails) = (0.0, 0.0, 0.0);
        }
        let end = self.lab.now.max(FAULTS_END) + Duration::from_secs(100);
        while self.lab.step(end) {
            self.take_news();
        }
        let [calls, waiting, flights, _] = self.lab.hub.sizes();
        assert_eq!((calls, waiting), (0, 0), "calls and parts that wait, at the end");
        assert_eq!(flights, 0, "tasks in flight at the end");
        let status = self.lab.hub.status();
        let (exact, n_worker) = (self.config.exact && self.n_class > 1, status.workers.len());
        let total: u64 = self.engine.shape.units().map(|u| self.engine.shape.bytes(u)).sum();
        let is_roomy = |node: usize| self.lab_memory(node) >= total;
        let has_room = (0..self.lab.n_node()).any(|i| {
            self.lab.is_alive(i)
                && Some(i) != self.liar
                && is_roomy(i)
                && status.workers.iter().any(|w| w.worker.0 as usize == i && w.is_up && !w.is_draining)
        });
        if has_room && !exact && n_worker > 0 && self.is_visible() {
            assert!(status.units.iter().all(|u| u.n_up > 0), "a unit that nobody holds: {status:#?}");
        }
    }

    fn lab_memory(&self, node: usize) -> u64 {
        self.lab.memory(node)
    }

    fn is_visible(&self) -> bool {
        (0..self.lab.n_node()).all(|i| self.lab.is_visible(i))
    }

    fn conclude(&mut self) {
        self.former.push(self.lab.hub.stats());
        for stats in &self.former {
            let most = 32.0 + self.config.budget * stats.n_task as f64;
            assert!(
                stats.n_hedge_late as f64 <= most,
                "{} late hedges of {} tasks",
                stats.n_hedge_late,
                stats.n_task
            );
            let seen = &mut *self.seen;
            seen.n_task += stats.n_task;
            seen.n_hedge_late += stats.n_hedge_late;
            seen.n_hedge_at_once += stats.n_hedge_at_once;
            seen.n_local += stats.n_local;
            seen.n_suspect += stats.n_suspect;
            seen.n_strike += stats.n_strike;
            seen.n_quarantined += stats.n_quarantined;
            seen.n_check += stats.n_check;
            seen.n_refused += stats.n_refused;
            seen.n_canary += stats.n_canary;
            seen.n_sum += stats.n_sum;
            seen.n_split += stats.n_split;
        }
    }
}

/// Runs the trial of a seed.
pub(crate) fn run(seed: u64, seen: &mut Seen) {
    Trial::new(seed, seen).run();
}
