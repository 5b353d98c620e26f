//! Whole models whose experts a hub has made by workers: the state machines of a swarm in this process, with every
//! frame encoded and decoded. Exact answers have the bits of one machine; sums are near them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chaski::experts::{
    AbsentExperts, ExpertCall, ExpertFuture, ExpertWorker, Experts, Graph, Home, Pair as OfEngine,
};
use chaski::gguf::MemorySource;
use chaski::kernels::FeatureSet;
use chaski::steps::{Runner, RunnerConfig};
use chaski_models::{Model, Target};
use chaski_swarm::{
    Action, Call, CallId, CallPair, Class, Event, HostId, Hub, HubConfig, Joined, LayerShape, ModelShape,
    PeerId, Stats, Unit, Worker, WorkerAction, WorkerConfig, WorkerEvent, WorkerId,
};
use chaski_wire::{Assembler, Assign, Body, Control, Dtype, Frame, Hex, Limits, Task};

use crate::archs::Fixture;
use crate::away::{config, load, model_of, names, results, worker_config};
use crate::common::{Failures, Timed, block_on, chain, full, nmse, say, shared_gpu};

/// Experts of a unit: fixtures have eight experts in a layer.
const BLOCK: u16 = 2;
/// Time of an event.
const EVENT: Duration = Duration::from_micros(20);

/// Values on the wire.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Mode {
    /// f32, a row a product.
    Exact,
    /// f16, a row a product.
    Rows,
    /// f16, sums.
    Sums,
}

/// A swarm to try.
#[derive(Copy, Clone, Debug)]
struct Way {
    workers: usize,
    replicas: usize,
    mode: Mode,
    /// Experts that workers have room for, as a part; the hub makes the others.
    room: f64,
}

/// A message on its way.
enum Mail {
    Hub(Event),
    Worker(usize, WorkerEvent),
}

/// A worker and its experts.
struct Seat {
    worker: Worker,
    products: ExpertWorker,
    assembler: Assembler,
}

/// A hub with its workers.
struct Swarm {
    hub: Hub,
    /// Products of the hub.
    local: ExpertWorker,
    seats: Vec<Seat>,
    shape: ModelShape,
    mail: VecDeque<Mail>,
    now: Duration,
    wake: Option<Duration>,
    answer: Option<Result<Vec<f32>, String>>,
    next: u64,
    model: Model<MemorySource>,
}

fn shape_of(graph: &Graph) -> ModelShape {
    let layers = graph.experts();
    let width = layers[0].widths(graph).0;
    let layer = |l: &chaski::experts::ExpertLayer| LayerShape {
        layer: l.layer,
        n_expert: l.n_expert as u16,
        expert_bytes: l.expert_bytes(graph),
    };
    ModelShape { layers: layers.iter().map(layer).collect(), width, block: BLOCK }
}

impl Swarm {
    /// Workers have joined and loaded what the hub gave them.
    fn new(model: Model<MemorySource>, way: Way) -> Swarm {
        let graph = block_on(model.graph(64)).expect("a graph");
        let shape = shape_of(&graph);
        let products = || ExpertWorker::new(&graph, worker_config()).expect("a worker");
        let total: u64 = shape.units().map(|unit| shape.bytes(unit)).sum();
        let memory = (total as f64 * way.room) as u64;
        let dtype = if way.mode == Mode::Exact { Dtype::F32 } else { Dtype::F16 };
        let hub = Hub::new(HubConfig {
            replicas: way.replicas,
            exact: way.mode == Mode::Exact,
            sums: way.mode == Mode::Sums,
            local: Some(Class(1)),
            input: dtype,
            output: dtype,
            check: 0.05,
            ..HubConfig::new(shape.clone(), 7)
        });
        let seat = |seed| Seat {
            worker: Worker::new(WorkerConfig { shape: shape.clone(), memory, slots: None, n_queue: 4, seed }),
            products: products(),
            assembler: Assembler::new(Limits::default()),
        };
        let seats = (0..way.workers as u64).map(seat).collect();
        let mut swarm = Swarm {
            hub,
            local: products(),
            seats,
            shape,
            mail: VecDeque::new(),
            now: Duration::ZERO,
            wake: None,
            answer: None,
            next: 1,
            model,
        };
        for i in 0..way.workers {
            let worker = Joined {
                worker: WorkerId(i as u64),
                host: HostId(i as u64),
                class: Class(1),
                memory,
                is_even: false,
            };
            swarm.mail.push_back(Mail::Hub(Event::Joined { peer: PeerId(i as u64), worker }));
            swarm.mail.push_back(Mail::Worker(i, WorkerEvent::Connected));
        }
        while swarm.now < Duration::from_secs(2) {
            swarm.turn();
        }
        swarm
    }

    /// Delivers a message, or lets time pass until something is due.
    fn turn(&mut self) {
        self.now += EVENT;
        let mail = self.mail.pop_front().unwrap_or_else(|| {
            self.now = self.wake.take().map_or(self.now, |wake| self.now.max(wake));
            Mail::Hub(Event::Timer)
        });
        match mail {
            Mail::Hub(event) => {
                let mut actions = Vec::new();
                self.hub.on(self.now, event, &mut actions);
                actions.into_iter().for_each(|action| self.perform(action));
            }
            Mail::Worker(i, event) => {
                let mut actions = Vec::new();
                self.seats[i].worker.on(self.now, event, &mut actions);
                actions.into_iter().for_each(|action| self.perform_at(i, action));
            }
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send { peer, frame } => {
                let i = peer.0 as usize;
                let frame = over_the_wire(&frame, &mut self.seats[i].assembler);
                self.mail.push_back(Mail::Worker(i, WorkerEvent::Frame(frame)));
            }
            Action::Assign { peer, epoch, units } => {
                let named = |u: Unit| chaski_wire::Unit::Experts {
                    layer: u.layer,
                    experts: self.shape.experts(u).collect(),
                };
                let units = units.into_iter().map(named).collect();
                let assign = Assign { epoch, more: false, units, files: Vec::new(), tensors: Vec::new() };
                let frame = Frame::plain(Body::Control(Control::Assign(assign)));
                self.mail.push_back(Mail::Worker(peer.0 as usize, WorkerEvent::Frame(frame)));
            }
            Action::Complete { rows, .. } => self.answer = Some(Ok(rows)),
            Action::Fail { error, .. } => self.answer = Some(Err(error.to_string())),
            Action::Compute { task, layer, step_columns, x, pairs, .. } => {
                for pair in &pairs {
                    if !self.local.has(layer, pair.expert) {
                        block_on(self.local.add(layer, pair.expert, &self.model)).expect("an expert");
                    }
                }
                let pairs = pairs.iter().map(|p| (p.expert, p.column, p.slot));
                let call = call_of((layer, self.shape.width, step_columns), &x, pairs.collect());
                let rows = Some(self.local.compute(&call).expect("the hub computes"));
                self.mail.push_back(Mail::Hub(Event::Computed { task, rows }));
            }
            Action::Wake { at } => self.wake = Some(at),
            Action::Close { reason, .. } => panic!("a connection is closed: {reason:?}"),
            Action::Tainted { worker, .. } => panic!("{worker:?} does not lie"),
            Action::Undecided { .. } => panic!("honest workers disagree"),
        }
    }

    fn perform_at(&mut self, i: usize, action: WorkerAction) {
        let Seat { products, .. } = &mut self.seats[i];
        match action {
            WorkerAction::Send(frame) => {
                let frame = over_the_wire(&frame, &mut Assembler::new(Limits::default()));
                self.mail.push_back(Mail::Hub(Event::Frame { peer: PeerId(i as u64), frame }));
            }
            WorkerAction::Compute { task, layer, body } => {
                let rows = products.compute(&call_of_task(layer, &body)).expect("a worker computes");
                self.mail.push_back(Mail::Worker(i, WorkerEvent::Computed { task, rows: Some(rows) }));
            }
            WorkerAction::Load(unit) => {
                for expert in self.shape.experts(unit) {
                    block_on(products.add(unit.layer, expert, &self.model)).expect("an expert");
                }
                let canary = Some(Hex([unit.block as u8; 32]));
                self.mail.push_back(Mail::Worker(i, WorkerEvent::Loaded { unit, canary }));
            }
            WorkerAction::Unload(unit) => {
                for expert in self.shape.experts(unit) {
                    products.remove(unit.layer, expert).expect("an expert of the model");
                }
            }
            WorkerAction::Connect | WorkerAction::Wake { .. } => {}
            WorkerAction::Close | WorkerAction::Stop => panic!("a worker leaves"),
        }
    }

    /// The answer to a call.
    fn rows(&mut self, call: ExpertCall) -> Result<Vec<f32>, String> {
        let ExpertCall { layer, step_columns, x, pairs, weights, .. } = call;
        let pair = |p: &OfEngine| CallPair { expert: p.expert, column: p.column, slot: p.slot };
        let (id, pairs) = (CallId(self.next), pairs.iter().map(pair).collect());
        self.next += 1;
        let call = Call { id, layer, step_columns, x: x.into(), pairs, weights };
        self.mail.push_back(Mail::Hub(Event::Call(call)));
        loop {
            self.turn();
            if let Some(answer) = self.answer.take() {
                return answer;
            }
        }
    }
}

/// A frame as the other side reads it.
fn over_the_wire(frame: &Frame, assembler: &mut Assembler) -> Frame {
    let parts = frame.encode(&Limits::default(), true).expect("a frame of a state machine is allowed");
    let mut read = parts.iter().map(|part| assembler.push(part).expect("a frame decodes"));
    read.next_back().flatten().expect("the last fragment completes a frame")
}

fn call_of(
    (layer, width, step_columns): (u16, u32, u32),
    x: &[f32],
    mut pairs: Vec<(u16, u16, u16)>,
) -> ExpertCall {
    let mut columns: Vec<u16> = pairs.iter().map(|p| p.1).collect();
    columns.sort_unstable();
    columns.dedup();
    let n = width as usize;
    let x = columns.iter().flat_map(|c| x[usize::from(*c) * n..][..n].to_vec()).collect();
    pairs.iter_mut().for_each(|p| p.1 = columns.binary_search(&p.1).expect("its column") as u16);
    let pairs = pairs.into_iter().map(|(expert, column, slot)| OfEngine { expert, column, slot }).collect();
    ExpertCall { layer, width, step_columns, x, pairs, weights: Vec::new() }
}

fn call_of_task(layer: u16, task: &Task) -> ExpertCall {
    let pairs = task.with_experts().map(|(expert, p)| (expert, p.column, p.slot)).collect();
    call_of((layer, task.rows.width(), task.step_columns), &task.rows.to_f32(), pairs)
}

/// The swarm as the engine sees it.
struct Away(Arc<Mutex<Swarm>>);

impl Experts for Away {
    fn homes(&mut self, _: u16, wanted: &[u16]) -> Vec<Home> {
        vec![Home::Away; wanted.len()]
    }

    fn call(&mut self, call: ExpertCall) -> ExpertFuture {
        let layer = call.layer;
        let rows = self.0.lock().expect("no panic").rows(call);
        let rows = rows.map_err(|text| chaski::experts::ExpertError::Failed { layer, source: text.into() });
        Box::pin(std::future::ready(rows))
    }
}

/// Greatest normalized mean square error of the logits of a family.
fn near(name: &str) -> f64 {
    match name {
        // Activations so small that their function depends on the last bits of f16 (`archs::GELU_OF_LITTLE`).
        "gemma4-moe" => 1.0,
        // Two experts of a column have nearly the same score, so that rounding chooses another one.
        "step35-moe" => 1e-4,
        _ => 1e-5,
    }
}

/// Runs a model alone and with a swarm; returns the counters of the hub.
fn compare(
    failures: &mut Failures,
    name: &str,
    swarm: Model<MemorySource>,
    way: Way,
    (mut alone, mut with): (Runner, Runner),
    tokens: &[u32],
) -> Stats {
    let swarm = Arc::new(Mutex::new(Swarm::new(swarm, way)));
    with.set_experts(Some(Box::new(Away(swarm.clone())))).expect("experts elsewhere");
    let mut worst: f64 = 0.0;
    let (expected, found) = (results(&mut alone, tokens), results(&mut with, tokens));
    for ((what, found), (_, expected)) in found.iter().zip(&expected) {
        let case = || format!("{name}, {way:?}, {what}");
        if way.mode == Mode::Exact {
            failures.check(found == expected, || format!("{}: other bits", case()));
        } else if what != "greedy" {
            let values = |bits: &[u32]| bits.iter().map(|v| f32::from_bits(*v)).collect::<Vec<f32>>();
            let error = nmse(&values(found), &values(expected));
            worst = worst.max(error);
            failures.check(error <= near(name), || format!("{}: {error:.1e}", case()));
        }
    }
    let stats = swarm.lock().expect("no panic").hub.stats();
    let is_right = stats.n_call > 0 && stats.n_failed + stats.n_dispute + stats.n_strike == 0;
    failures.check(is_right, || format!("{name}, {way:?}: {stats:?}"));
    if full() {
        say(format!("{name}, {way:?}: {worst:.1e}"));
    }
    stats
}

/// A fixture's model, twice: the swarm reads experts of its own.
fn models(name: &'static str) -> (Fixture, [Model<MemorySource>; 2]) {
    let f = Fixture::load(name);
    let models = [model_of(&f).0, model_of(&f).0];
    (f, models)
}

#[test]
fn every_family_runs_in_a_swarm() {
    let _t = Timed::new("swarms, all families");
    let mut failures = Failures::default();
    // With biases, weights before the products, and scaled weights.
    let few = ["gpt-oss-moe", "llama4-moe", "deepseek2-moe"];
    let names: Vec<&str> = names().into_iter().filter(|n| full() || few.contains(n)).collect();
    let (mut n_sum, mut n_local, mut n_check) = (0, 0, 0);
    for (nth, name) in names.iter().enumerate() {
        let mut ways = Vec::new();
        for mode in [Mode::Exact, Mode::Rows, Mode::Sums] {
            for workers in [1, 2, 4, 8] {
                for replicas in [1, 2] {
                    let room = if nth % 3 == 2 { 0.6 / workers as f64 } else { 3.0 };
                    ways.push(Way { workers, replicas, mode, room });
                }
            }
        }
        let ways = if full() { ways } else { vec![ways[4 + nth % 2], ways[20 + nth % 2]] };
        for way in ways {
            let (f, [model, swarm]) = models(name);
            let none = RunnerConfig { absent_experts: AbsentExperts::All, ..config() };
            let runners = (load(&model, &config()), load(&model, &none));
            let stats = compare(&mut failures, name, swarm, way, runners, &f.tokens);
            failures.check((stats.n_local > 0) == (way.room < 1.0), || format!("{name}, {way:?}: {stats:?}"));
            n_sum += stats.n_sum;
            n_local += stats.n_local;
            n_check += stats.n_check;
        }
    }
    say(format!(
        "{} families: {n_sum} products in sums, {n_local} tasks of hubs, {n_check} checks",
        names.len()
    ));
    failures.check(n_sum > 0 && n_local > 0 && n_check > 0, || "something never came".to_owned());
    failures.conclude();
}

/// A hub on a device reads the weights of pairs back with the route.
#[test]
fn a_hub_on_a_device_has_sums_from_workers_on_the_cpu() {
    let _t = Timed::new("swarms, hub on a device");
    let mut failures = Failures::default();
    let name = "qwen3moe-moe";
    let gpu = shared_gpu(FeatureSet::Base, false);
    let (f, [model, swarm]) = models(name);
    let config = RunnerConfig { experts_away: true, expert_slots: 3, ..config() };
    let load = || {
        let loaded = block_on(Runner::load(&model, &Target::Gpu(gpu.clone()), &config, |_| {}));
        loaded.unwrap_or_else(|e| panic!("{}", chain(&e)))
    };
    let way = Way { workers: 2, replicas: 1, mode: Mode::Sums, room: 3.0 };
    let stats = compare(&mut failures, name, swarm, way, (load(), load()), &f.tokens);
    failures.check(stats.n_sum > 0, || format!("{stats:?}"));
    failures.conclude();
}
