//! One swarm in a steady state, and the times of its tokens.

use std::time::Duration;

use chaski_swarm::{CallId, HubConfig, LayerShape, ModelShape};

use crate::engine::{Engine, Verdict};
use crate::lab::{Lab, Machine, News};
use crate::network::{Delay, Network};

/// Notes that are no streams.
pub(crate) const EVENT: u64 = 1 << 32;

/// A swarm and its work.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) config: HubConfig,
    pub(crate) network: Network,
    pub(crate) machines: Vec<Machine>,
    pub(crate) n_stream: usize,
    pub(crate) n_token: u64,
    /// Experts of a column.
    pub(crate) n_used: u64,
    /// Time between calls.
    pub(crate) think: Duration,
    /// Layers of a token, which may be the same layer several times.
    pub(crate) n_layer: usize,
    pub(crate) seed: u64,
}

/// A scene while it runs.
pub(crate) struct Running {
    pub(crate) lab: Lab,
    pub(crate) engine: Engine,
    /// Times of complete tokens.
    pub(crate) tokens: Vec<Duration>,
    /// Calls with wrong rows.
    pub(crate) wrong: Vec<CallId>,
    think: Duration,
    is_summed: bool,
}

/// A model of some layers of `n_expert` experts.
pub(crate) fn model(n_layer: u16, n_expert: u16, block: u16) -> ModelShape {
    let layers = (0..n_layer).map(|layer| LayerShape { layer, n_expert, expert_bytes: 1 }).collect();
    ModelShape { layers, width: 2, block }
}

impl Scene {
    /// Workers join and load, then the work begins.
    pub(crate) fn begin(&self) -> Running {
        let mut lab = Lab::new(self.config.clone(), self.network, self.machines.clone(), self.seed);
        while lab.step(Duration::from_secs(5)) {}
        let shape = self.config.shape.clone();
        let mut engine = Engine::new(shape, self.n_stream, self.n_token, self.n_used, 1, self.seed);
        engine.n_layer = self.n_layer;
        let (think, is_summed) = (self.think, self.config.sums);
        let mut running = Running { lab, engine, tokens: Vec::new(), wrong: Vec::new(), think, is_summed };
        for stream in 0..self.n_stream {
            running.lab.note(self.think * stream as u32, stream as u64);
        }
        running
    }

    /// Runs all tokens.
    pub(crate) fn run(&self) -> Running {
        let mut running = self.begin();
        while running.step().is_some() {}
        assert!(running.wrong.is_empty());
        running
    }
}

impl Running {
    pub(crate) fn is_done(&self) -> bool {
        self.engine.streams.iter().all(|s| s.is_done)
    }

    /// Has the next thing happen, and returns news that concern the caller; `None` at the end.
    pub(crate) fn step(&mut self) -> Option<Vec<News>> {
        if self.is_done() {
            return None;
        }
        assert!(self.lab.step(Duration::from_secs(10_000)), "calls without an answer");
        let mut rest = Vec::new();
        for news in std::mem::take(&mut self.lab.news) {
            match news {
                News::Note(stream) if stream < EVENT => {
                    let call = self.engine.ask(self.lab.now, stream as usize);
                    self.lab.call(call);
                }
                News::Complete(id, rows) => self.completed(id, &rows),
                News::Fail(id, error) => panic!("{id:?}: {error}"),
                other => rest.push(other),
            }
        }
        Some(rest)
    }

    fn completed(&mut self, id: CallId, rows: &[f32]) {
        let asked = self.engine.take(id);
        let verdict = match self.is_summed {
            true => self.engine.verdict_of_sums(&asked, rows, 6e-5),
            false => self.engine.verdict(&asked, rows, 1),
        };
        if verdict == Verdict::Wrong {
            self.wrong.push(id);
        }
        let began = self.engine.streams[asked.stream].began;
        if self.engine.advance(asked.stream) {
            self.tokens.push(self.lab.now - began);
        }
        if !self.engine.streams[asked.stream].is_done {
            self.lab.note(self.think, asked.stream as u64);
        }
    }

    /// A quantile of the times of tokens after the first ones, in milliseconds.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        let mut times: Vec<f64> = self.tokens.iter().skip(20).map(|t| t.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        times[((times.len() - 1) as f64 * q).round() as usize]
    }

    /// Hedges over other tasks.
    pub(crate) fn extra(&self) -> f64 {
        let stats = self.lab.hub.stats();
        let n_hedge = stats.n_hedge_late + stats.n_hedge_at_once;
        n_hedge as f64 / (stats.n_task - n_hedge).max(1) as f64
    }

    /// Tasks that workers began beyond those that were needed, as a part of these.
    pub(crate) fn extra_work(&self) -> f64 {
        let stats = self.lab.hub.stats();
        let n_needed = stats.n_task - stats.n_hedge_late - stats.n_hedge_at_once;
        self.lab.traffic.n_started as f64 / n_needed.max(1) as f64 - 1.0
    }
}

/// A network without delays.
pub(crate) fn no_delay() -> Network {
    let zero = Delay::Constant { ms: 0.0 };
    Network { to_worker: zero, to_hub: zero, is_ordered: false }
}
