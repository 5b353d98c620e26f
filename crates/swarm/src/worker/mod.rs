//! The worker: holds units of experts and answers tasks for them, one at a time.
//!
//! [`Worker::on`] takes a [`WorkerEvent`] and appends [`WorkerAction`]s. The caller owns the socket, the clock, the
//! store of weights and the device: it connects and proves the token, loads units, computes tasks.

mod queue;
mod units;

use std::time::Duration;

use chaski_wire::{Body, Control, Drain, Fail, FailCode, Frame, State, Task};

use crate::random::Random;
use crate::timers::Timers;
use crate::unit::{ModelShape, Unit};
use queue::Queue;
use units::Units;

/// First and longest time before a connection is tried again, before chance.
const AGAIN: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// Longest time before the first try: so that the workers of a hub that restarts do not come all at once.
const JITTER: Duration = Duration::from_secs(5);
/// Wrong frames after which the connection is closed.
const STRIKES: u32 = 3;

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Experts of the model.
    pub shape: ModelShape,
    /// Bytes for units.
    pub memory: u64,
    /// Most experts of one layer; `None` if bytes alone count.
    pub slots: Option<u32>,
    /// Tasks that wait beside the one that runs.
    pub n_queue: usize,
    /// Seed of all chance.
    pub seed: u64,
}

/// An input of a worker.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "most are frames, which a box would allocate once more")]
pub enum WorkerEvent {
    /// The hub has said WELCOME over a new connection.
    Connected,
    /// A connection is closed, could not be made, or was refused.
    Closed,
    /// A frame of the hub. The caller keeps the sources of weights in an ASSIGN.
    Frame(Frame),
    /// A frame that could not be decoded.
    Malformed {
        /// Task in its header, or 0.
        task: u64,
    },
    /// Answer to [`WorkerAction::Load`].
    Loaded {
        /// The unit.
        unit: Unit,
        /// Digest of the bits that it makes of fixed vectors; `None` if it could not be loaded.
        canary: Option<chaski_wire::Digest>,
    },
    /// Answer to [`WorkerAction::Compute`].
    Computed {
        /// The task.
        task: u64,
        /// Rows `[n_pair, width]`, also of a task that wants sums, or `None` if they could not be made.
        rows: Option<Vec<f32>>,
    },
    /// Visibility or speed of the machine have changed.
    State(State),
    /// The worker should leave politely.
    Leave,
    /// Time has passed.
    Timer,
}

/// An output of a worker.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "most are frames, which a box would allocate once more")]
pub enum WorkerAction {
    /// Send a frame.
    Send(Frame),
    /// Compute a task, and answer with [`WorkerEvent::Computed`]. There is one at a time.
    Compute {
        /// Name of the task.
        task: u64,
        /// Layer of the model.
        layer: u16,
        /// The task.
        body: Task,
    },
    /// Load a unit, and answer with [`WorkerEvent::Loaded`]. There is one at a time.
    Load(Unit),
    /// Free a unit.
    Unload(Unit),
    /// Connect, and answer with [`WorkerEvent::Connected`] or [`WorkerEvent::Closed`].
    Connect,
    /// Close the connection; [`WorkerEvent::Closed`] follows.
    Close,
    /// The worker has left.
    Stop,
    /// Send [`WorkerEvent::Timer`] at this time; an earlier wish is void.
    Wake {
        /// Time on the clock of [`Worker::on`].
        at: Duration,
    },
}

/// Names of timers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Connect,
    Load,
}

/// A worker of a swarm, without I/O.
#[derive(Debug)]
pub struct Worker {
    config: WorkerConfig,
    random: Random,
    is_connected: bool,
    /// Time before the next try to connect, doubled with every one that fails.
    again: Duration,
    is_leaving: bool,
    strikes: u32,
    epoch: u32,
    units: Units,
    queue: Queue,
    timers: Timers<Timer>,
    wake: Option<Duration>,
}

impl Worker {
    /// A worker that connects at the first event.
    pub fn new(config: WorkerConfig) -> Self {
        let random = Random::new(config.seed);
        let mut timers = Timers::default();
        timers.set(Timer::Connect, Duration::ZERO);
        Self {
            units: Units::new(config.memory, config.slots),
            queue: Queue::new(config.n_queue),
            config,
            random,
            is_connected: false,
            again: AGAIN.0,
            is_leaving: false,
            strikes: 0,
            epoch: 0,
            timers,
            wake: None,
        }
    }

    /// Takes an event and appends what is to be done. `now` never decreases.
    pub fn on(&mut self, now: Duration, event: WorkerEvent, actions: &mut Vec<WorkerAction>) {
        match event {
            WorkerEvent::Connected => self.connected(actions),
            WorkerEvent::Closed => self.closed(now, actions),
            WorkerEvent::Frame(frame) => self.frame(now, frame, actions),
            WorkerEvent::Malformed { task } => self.strike(task, "the frame cannot be decoded", actions),
            WorkerEvent::Loaded { unit, canary } => self.loaded(now, unit, canary, actions),
            WorkerEvent::Computed { task, rows } => self.computed(now, task, rows, actions),
            WorkerEvent::State(state) => self.send(Frame::plain(Body::State(state)), actions),
            WorkerEvent::Leave => self.leave(actions),
            WorkerEvent::Timer => {}
        }
        while let Some(timer) = self.timers.due(now) {
            match timer {
                Timer::Connect => actions.push(WorkerAction::Connect),
                Timer::Load => {}
            }
        }
        self.unload(actions);
        self.load(now, actions);
        self.start(now, actions);
        let next = self.timers.next();
        if let Some(at) = next.filter(|_| next != self.wake) {
            actions.push(WorkerAction::Wake { at });
        }
        self.wake = next;
    }

    /// Units that the worker holds.
    pub fn held(&self) -> impl Iterator<Item = Unit> + '_ {
        self.units.held()
    }

    /// Numbers of tasks that wait and of units that are held.
    pub fn sizes(&self) -> [usize; 2] {
        [self.queue.len(), self.units.held().count()]
    }

    fn send(&self, frame: Frame, actions: &mut Vec<WorkerAction>) {
        if self.is_connected {
            actions.push(WorkerAction::Send(frame));
        }
    }

    /// A new connection: the worker offers what it holds, which a hub that restarted does not know.
    fn connected(&mut self, actions: &mut Vec<WorkerAction>) {
        (self.is_connected, self.again, self.strikes) = (true, AGAIN.0, 0);
        self.timers.cancel(Timer::Connect);
        self.units.forget_assignment();
        let units: Vec<Unit> = self.units.held().collect();
        units.into_iter().for_each(|unit| self.announce(unit, actions));
    }

    /// The connection is gone: nobody waits for the queue, and another try comes at a random time.
    fn closed(&mut self, now: Duration, actions: &mut Vec<WorkerAction>) {
        self.queue.clear();
        let is_first = self.is_connected;
        self.is_connected = false;
        if self.is_leaving {
            return actions.push(WorkerAction::Stop);
        }
        let longest = if is_first { JITTER } else { self.again };
        let pause = AGAIN.0 + (longest - AGAIN.0.min(longest)).mul_f64(self.random.unit());
        self.again = if is_first { JITTER } else { (2 * self.again).min(AGAIN.1) };
        self.timers.set(Timer::Connect, now + pause);
    }

    fn frame(&mut self, now: Duration, frame: Frame, actions: &mut Vec<WorkerAction>) {
        match frame.body {
            Body::Task(task) => self.task(now, (frame.task, frame.epoch, frame.layer), task, actions),
            Body::Cancel(ids) => self.queue.cancel(&ids),
            Body::Ping(clock) => self.send(Frame::plain(Body::Pong(clock)), actions),
            Body::Control(Control::Assign(assign)) => match self.named(&assign.units) {
                Some(units) => self.assigned(assign.epoch, units, assign.more, actions),
                None => self.strike(0, "a unit that the model does not have", actions),
            },
            // The hub does not use a unit whose digest differs from others', or could not read a frame.
            Body::Fail(_) | Body::Pong(_) => {}
            Body::Control(Control::Drain(_)) => self.leave(actions),
            other => self.strike(0, &format!("{:?} is nothing that a hub sends", other.kind()), actions),
        }
    }

    /// A frame that the protocol does not allow: FAIL, and the third time the end.
    fn strike(&mut self, task: u64, text: &str, actions: &mut Vec<WorkerAction>) {
        self.strikes += 1;
        let fail = Body::Fail(Fail::new(FailCode::BAD_FRAME, 0, text));
        self.send(Frame { task, ..Frame::plain(fail) }, actions);
        if self.strikes == STRIKES && self.is_connected {
            actions.push(WorkerAction::Close);
        }
    }

    /// Leaves politely: the hub closes the connection when others hold what this worker holds.
    fn leave(&mut self, actions: &mut Vec<WorkerAction>) {
        if self.is_leaving {
            return;
        }
        self.is_leaving = true;
        self.timers.cancel(Timer::Connect);
        match self.is_connected {
            true => {
                let drain = Drain { text: "the worker leaves".to_owned() };
                self.send(Frame::plain(Body::Control(Control::Drain(drain))), actions);
            }
            false => actions.push(WorkerAction::Stop),
        }
    }
}
