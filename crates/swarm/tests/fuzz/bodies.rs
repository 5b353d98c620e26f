//! The body of the fuzz target `swarm`: any events give actions, within bounds. `tests/random.rs` and the fuzzer run
//! it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chaski_swarm::{
    Action, Bounds, Call, CallId, CallPair, Class, Event, Hedging, HostId, Hub, HubConfig, Joined,
    LayerShape, ModelShape, PeerId, Unit, Worker, WorkerAction, WorkerConfig, WorkerEvent, WorkerId,
};
use chaski_wire::{
    Answer, Assign, Body, Control, Drain, Dtype, Fail, FailCode, Frame, Have, Hex, Limits, Pair, Rows, Run,
    State, Task,
};

/// Most events of an input.
const N_EVENT: usize = 2_000;
/// Calls at once, and parts of one.
const N_CALL: usize = 4;
const N_PART: usize = 8;

/// Numbers from bytes; zeros at the end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    fn bytes(&mut self, n: usize) -> &[u8] {
        let (bytes, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// Mostly a small number, sometimes a large one.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => 1 << 40,
            n => n.into(),
        }
    }

    /// Finite values.
    fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| f32::from(self.byte() as i8) / 16.0).collect()
    }

    fn rows(&mut self, n_row: u8, width: u8) -> Rows {
        let (n_row, width) = (n_row.max(1), width.max(1));
        let values = self.values(usize::from(n_row) * usize::from(width));
        let dtype = Dtype::ALL[usize::from(self.below(4))];
        Rows::encode(width.into(), &values, dtype).expect("finite rows")
    }

    fn unit(&mut self) -> chaski_wire::Unit {
        let (layer, first) = (u16::from(self.below(4)), u16::from(self.below(6)));
        match self.below(8) {
            0 => chaski_wire::Unit::Span { first: layer, end: layer + 1 },
            1 => chaski_wire::Unit::Experts { layer, experts: vec![first] },
            2 => chaski_wire::Unit::Experts { layer, experts: Vec::new() },
            _ => chaski_wire::Unit::Experts { layer, experts: vec![first & !1, first | 1] },
        }
    }

    /// A frame that decodes, from any bytes; or one of a kind that both sides know.
    fn frame(&mut self) -> Option<Frame> {
        let (task, epoch, layer) = (self.number(), u32::from(self.below(4)), u16::from(self.below(4)));
        let body = match self.below(12) {
            0 => {
                let n = usize::from(self.byte());
                return Frame::decode(self.bytes(n), &Limits::default()).ok();
            }
            1 | 2 => {
                let (n_row, width) = (self.below(5), self.below(4));
                let times = [self.number() as u32, self.number() as u32];
                let answer = Answer {
                    rows: self.rows(n_row, width),
                    queue: self.byte(),
                    queued: times[0],
                    running: times[1],
                };
                Body::Result { answer, sum: self.below(16) == 0 }
            }
            3 => Body::Fail(Fail::new(
                FailCode(u16::from(self.below(12)).max(1)),
                self.number() as u32,
                "text",
            )),
            4 => Body::State(State { visible: self.below(2) == 0, throttled: false, queue: 0, free_mib: 0 }),
            5 => Body::Pong(self.number()),
            6 => Body::Ping(self.number()),
            7 | 8 => {
                let units = (0..=self.below(2)).map(|_| self.unit()).collect();
                Body::Control(Control::Have(Have { epoch, units, canary: Hex([self.below(2); 32]) }))
            }
            9 => Body::Control(Control::Drain(Drain { text: String::new() })),
            10 => {
                let units = (0..self.below(8)).map(|_| self.unit()).collect();
                let more = self.below(8) == 0;
                Body::Control(Control::Assign(Assign {
                    epoch,
                    more,
                    units,
                    files: Vec::new(),
                    tensors: Vec::new(),
                }))
            }
            _ => self.task(),
        };
        // State machines see what a decoder lets pass.
        let parts = Frame { task, epoch, layer, body }.encode(&Limits::default(), false).ok()?;
        Frame::decode(&parts[0], &Limits::default()).ok()
    }

    /// TASK as a decoder lets it pass: experts ascend, and so do the columns of each.
    fn task(&mut self) -> Body {
        let (n_run, n_column, width) = (1 + self.below(3), 1 + self.below(2), self.below(4));
        let rows = self.rows(n_column, width);
        let first = u16::from(self.below(6));
        let runs: Vec<Run> =
            (0..u16::from(n_run)).map(|i| Run { expert: first + i, n: n_column.into() }).collect();
        let pairs =
            runs.iter().flat_map(|_| (0..n_column).map(|c| Pair { column: c.into(), slot: 0 })).collect();
        let weights = (self.below(16) == 0).then(|| vec![1.0; usize::from(n_run * n_column)]);
        let (answer, budget) = (Dtype::ALL[usize::from(self.below(4))], self.number() as u32);
        Body::Task(Task { runs, pairs, weights, rows, answer, budget, step_columns: 8 })
    }

    fn time(&mut self) -> Duration {
        match self.below(16) {
            0 => Duration::from_secs(self.byte().into()),
            1..4 => Duration::from_millis(self.byte().into()),
            _ => Duration::from_micros(self.byte().into()),
        }
    }
}

fn shape() -> ModelShape {
    let layers = [0, 2].map(|layer| LayerShape { layer, n_expert: 5, expert_bytes: 10 });
    ModelShape { layers: layers.to_vec(), width: 2, block: 2 }
}

/// Runs a hub, or a worker, on any events.
pub(crate) fn swarm(bytes: &[u8]) {
    let mut reader = Reader(bytes);
    match reader.below(4) {
        0 => worker(&mut reader),
        _ => hub(&mut reader),
    }
}

/// A hub among peers that send anything, and an engine that asks for anything.
fn hub(reader: &mut Reader<'_>) {
    let local = (reader.below(2) == 0).then_some(Class(0));
    let config = HubConfig {
        exact: reader.below(2) == 0,
        sums: reader.below(2) == 0,
        local,
        hedging: [Hedging::Never, Hedging::Auto, Hedging::Always][usize::from(reader.below(3))],
        check: f64::from(reader.below(2)),
        verify_all: reader.below(4) == 0,
        replicas: 1 + usize::from(reader.below(3)),
        bounds: Bounds { n_peer: 4, n_call: N_CALL, ..Bounds::default() },
        ..HubConfig::new(shape(), 1)
    };
    let mut hub = Hub::new(config);
    let (mut now, mut next, mut open) = (Duration::ZERO, 1, BTreeSet::new());
    // Tasks that were sent, and not answered by `honest`.
    let mut sent: Vec<(PeerId, Frame)> = Vec::new();
    for _ in 0..N_EVENT {
        if reader.0.is_empty() {
            break;
        }
        now += reader.time();
        let peer = PeerId(reader.below(6).into());
        let event = match reader.below(10) {
            0 => {
                let (worker, host) = (WorkerId(reader.below(5).into()), HostId(reader.below(4).into()));
                let joined = Joined {
                    worker,
                    host,
                    class: Class(reader.below(2).into()),
                    memory: reader.number(),
                    is_even: reader.below(2) == 1,
                };
                Event::Joined { peer, worker: joined }
            }
            1 if reader.below(4) == 0 => Event::Closed { peer },
            2 => Event::Malformed { peer, task: reader.number() },
            3 => Event::Call(call(reader, &mut next)),
            4 => Event::Cancel(CallId(reader.number())),
            5 => {
                let n = usize::from(reader.below(8));
                Event::Computed { task: reader.number(), rows: (n > 0).then(|| reader.values(n)) }
            }
            6 => Event::Timer,
            7 | 8 if !sent.is_empty() => {
                let i = usize::from(reader.byte()) % sent.len();
                let (peer, task) = sent.swap_remove(i);
                Event::Frame { peer, frame: honest(task) }
            }
            _ => match reader.frame() {
                Some(frame) => Event::Frame { peer, frame },
                None => Event::Malformed { peer, task: 0 },
            },
        };
        if let Event::Call(call) = &event {
            open.insert(call.id);
        }
        if let Event::Cancel(call) = &event {
            open.remove(call);
        }
        let mut actions = Vec::new();
        hub.on(now, event, &mut actions);
        for action in actions {
            match action {
                Action::Complete { call, .. } | Action::Fail { call, .. } => {
                    assert!(
                        open.remove(&call),
                        "{call:?} is answered, but was not asked, or was answered before"
                    );
                }
                Action::Send { peer, frame } => {
                    frame.encode(&Limits::default(), true).expect("frames of a hub are allowed");
                    if matches!(frame.body, Body::Task(_)) && sent.len() < 64 {
                        sent.push((peer, frame));
                    }
                }
                _ => {}
            }
        }
        let [calls, waiting, flights, timers] = hub.sizes();
        assert!(
            calls <= N_CALL && calls == open.len() && waiting <= N_CALL * N_PART,
            "{calls} calls, {waiting} parts"
        );
        assert!(flights <= 4 * 21 + 4 * (N_CALL + 1) * N_PART + 512, "{flights} tasks in flight");
        assert!(timers <= 2 * flights + 64, "{timers} timers");
    }
}

/// Zeros of the right shape for a task.
fn honest(frame: Frame) -> Frame {
    let Body::Task(task) = frame.body else { unreachable!("tasks are kept alone") };
    let values = vec![0.5; task.n_answer() as usize * task.rows.width() as usize];
    let rows = Rows::encode(task.rows.width(), &values, task.answer).expect("finite rows");
    let answer = Answer { rows, queue: 0, queued: 1, running: 10 };
    let sum = task.weights.is_some();
    Frame { body: Body::Result { answer, sum }, ..frame }
}

/// A call, mostly one that the model allows.
fn call(reader: &mut Reader<'_>, next: &mut u64) -> Call {
    let (layer, n_column) = (u16::from(reader.below(3)), usize::from(reader.below(3)));
    let mut x = reader.values(2 * n_column);
    if reader.below(32) == 0 {
        x.push(f32::NAN);
    }
    let mut pairs: Vec<CallPair> = (0..reader.below(5))
        .map(|slot| CallPair {
            expert: reader.below(6).into(),
            column: reader.below(3).into(),
            slot: slot.into(),
        })
        .collect();
    pairs.sort();
    pairs.dedup_by_key(|p| (p.expert, p.column));
    *next += 1;
    let weights = match reader.below(8) {
        0 => reader.values(1),
        1 | 2 => Vec::new(),
        _ => reader.values(pairs.len()),
    };
    Call { id: CallId(*next), layer, step_columns: reader.below(4).into(), x: Arc::from(x), pairs, weights }
}

/// A worker whose hub sends anything.
fn worker(reader: &mut Reader<'_>) {
    let memory = reader.number();
    let mut worker = Worker::new(WorkerConfig { shape: shape(), memory, slots: None, n_queue: 4, seed: 1 });
    let mut now = Duration::ZERO;
    let (mut loading, mut running) = (None, None);
    let mut loaded: BTreeSet<Unit> = BTreeSet::new();
    for _ in 0..N_EVENT {
        if reader.0.is_empty() {
            break;
        }
        now += reader.time();
        let event = match reader.below(10) {
            0 => WorkerEvent::Connected,
            1 => WorkerEvent::Closed,
            2 => WorkerEvent::Malformed { task: reader.number() },
            3 | 4 => match loading.take() {
                Some(unit) => {
                    let canary = (reader.below(4) > 0).then_some(Hex([0; 32]));
                    if canary.is_some() {
                        loaded.insert(unit);
                    }
                    WorkerEvent::Loaded { unit, canary }
                }
                None => WorkerEvent::Loaded { unit: Unit { layer: 0, block: 9 }, canary: Some(Hex([1; 32])) },
            },
            5 => match running.take() {
                Some((task, n)) => {
                    let n = if reader.below(8) == 0 { 1 } else { n };
                    WorkerEvent::Computed { task, rows: (reader.below(8) > 0).then(|| reader.values(n)) }
                }
                None => WorkerEvent::Computed { task: reader.number(), rows: None },
            },
            6 if reader.below(32) == 0 => WorkerEvent::Leave,
            6 => WorkerEvent::Timer,
            _ => match reader.frame() {
                Some(frame) => WorkerEvent::Frame(frame),
                None => WorkerEvent::Malformed { task: 0 },
            },
        };
        let mut actions = Vec::new();
        worker.on(now, event, &mut actions);
        for action in actions {
            match action {
                WorkerAction::Send(frame) => {
                    frame.encode(&Limits::default(), true).expect("frames of a worker are allowed");
                }
                WorkerAction::Load(unit) => assert!(loading.replace(unit).is_none(), "two units load"),
                WorkerAction::Unload(unit) => assert!(loaded.remove(&unit), "{unit:?} was not loaded"),
                WorkerAction::Compute { task, body, .. } => {
                    let n = body.n_answer() as usize * body.rows.width() as usize;
                    assert!(running.replace((task, n)).is_none(), "two tasks run");
                }
                _ => {}
            }
        }
        let bytes: u64 = loaded.iter().map(|unit| shape().bytes(*unit)).sum();
        assert!(bytes <= memory, "{bytes} bytes of units, {memory} allowed");
        assert!(worker.held().eq(loaded.iter().copied()));
        assert!(worker.sizes()[0] <= 4);
    }
}
