//! The hub: takes calls of the engine, has workers answer them, and keeps the swarm in order.
//!
//! [`Hub::on`] takes an [`Event`] and appends [`Action`]s. The caller owns sockets, clock and weights: it decodes
//! frames, performs actions in their order, and sends [`Event::Timer`] when the moment of the last [`Action::Wake`] has
//! come.
//!
//! A [`Call`] (`call`) is cut into parts, one for each unit, or one for units whose products a worker sums (`parts`).
//! Parts that need an answer are given to workers, one task a worker (`dispatch`); late ones are hedged; answers
//! complete parts and calls (`answer`); some are made again (`check`). `member` has workers that come and go, their
//! health, and the placement of units.

mod answer;
mod call;
mod check;
mod dispatch;
mod flight;
mod member;
mod parts;
mod peer;
mod status;
mod times;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chaski_wire::{Answer, Digest, Dtype, Frame};

use crate::estimate::Histogram;
use crate::hedge::{Belief, Bucket, Hedging};
use crate::place::Assignment;
use crate::random::Random;
use crate::timers::Timers;
use crate::unit::{CallId, CallPair, Class, HostId, ModelShape, PeerId, Unit, WorkerId};
use crate::verify::{Disagreements, Norms};
use call::Open;
use check::Probe;
use flight::Flight;
use peer::Peer;
pub use status::{Stats, Status, UnitStatus, WorkerStatus};
pub use times::Times;

/// Settings of a hub.
#[derive(Clone, Debug)]
pub struct HubConfig {
    /// Experts of the model.
    pub shape: ModelShape,
    /// Workers of each unit, on distinct hosts.
    pub replicas: usize,
    /// Every answer comes from workers of one class, so that bits do not depend on who answers.
    pub exact: bool,
    /// Class of the hub's own products, if it can make them ([`Action::Compute`]): it does where no worker can, and
    /// decides who lies. In exact mode workers of its class alone serve; without it, those of the class that holds
    /// most.
    pub local: Option<Class>,
    /// Number format of inputs. Exact mode needs [`Dtype::F32`].
    pub input: Dtype,
    /// Number format of answers. Exact mode needs [`Dtype::F32`].
    pub output: Dtype,
    /// Workers weigh and sum the products of a column, if a call has weights: one row a column and task in place of
    /// one a pair. All experts of a layer are placed on as few workers as have room. Not in exact mode, whose sums are
    /// those of one machine.
    pub sums: bool,
    /// Policy of hedging.
    pub hedging: Hedging,
    /// Late hedges as a part of all tasks.
    pub budget: f64,
    /// Part of the answers that are made again by somebody else.
    pub check: f64,
    /// Every answer is made twice, on two hosts, and used if both agree.
    pub verify_all: bool,
    /// Bounds of memory and time.
    pub bounds: Bounds,
    /// Seed of all chance. Workers must not know it: it chooses the answers that are checked.
    pub seed: u64,
}

impl HubConfig {
    /// Exact mode with two replicas, automatic hedging of 5 % and checks of 1 %, without local products.
    pub fn new(shape: ModelShape, seed: u64) -> Self {
        Self {
            shape,
            replicas: 2,
            exact: true,
            local: None,
            input: Dtype::F32,
            output: Dtype::F32,
            sums: false,
            hedging: Hedging::Auto,
            budget: 0.05,
            check: 0.01,
            verify_all: false,
            bounds: Bounds::default(),
            seed,
        }
    }
}

/// Bounds of a hub.
#[derive(Copy, Clone, Debug)]
pub struct Bounds {
    /// Workers.
    pub n_peer: usize,
    /// Calls in progress.
    pub n_call: usize,
    /// Tasks in flight at a worker.
    pub n_task: usize,
    /// Bytes of rows in flight at a worker, both ways.
    pub n_byte: u64,
    /// Time that a part of a call waits for a worker that can answer it.
    pub orphan: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { n_peer: 64, n_call: 256, n_task: 4, n_byte: 8 << 20, orphan: Duration::from_secs(30) }
    }
}

/// A worker that has proved that it belongs to the swarm.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Joined {
    /// The worker.
    pub worker: WorkerId,
    /// Its machine.
    pub host: HostId,
    /// Class of its products.
    pub class: Class,
    /// Bytes for units.
    pub memory: u64,
    /// The worker has as many slots in each layer ([`ModelShape::even_slots`]), rather than bytes for any units.
    pub is_even: bool,
}

/// The products of a layer in one step of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name, which the engine never uses again. Names grow.
    pub id: CallId,
    /// Layer of the model.
    pub layer: u16,
    /// Columns of the engine's whole step.
    pub step_columns: u32,
    /// Inputs `[n_column, width]`, finite.
    pub x: Arc<[f32]>,
    /// Pairs in ascending order by expert, then column, each once.
    pub pairs: Vec<CallPair>,
    /// The weight of each pair, by which the engine multiplies its row before it sums them; empty if it does not tell.
    pub weights: Vec<f32>,
}

/// An input of the hub.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "most are frames, which a box would allocate once more")]
pub enum Event {
    /// A worker is welcome.
    Joined {
        /// Its connection.
        peer: PeerId,
        /// The worker.
        worker: Joined,
    },
    /// A connection is closed, by either side.
    Closed {
        /// The connection.
        peer: PeerId,
    },
    /// A frame of a worker.
    Frame {
        /// Its connection.
        peer: PeerId,
        /// The frame.
        frame: Frame,
    },
    /// A RESULT whose rows the caller has decoded: large ones take longer than all that the hub does.
    Answer {
        /// Its connection.
        peer: PeerId,
        /// Task, epoch and layer of its frame.
        name: (u64, u32, u16),
        /// Its flag SUM.
        sum: bool,
        /// The answer.
        answer: Answer,
        /// Its values ([`chaski_wire::Rows::to_f32`]).
        values: Vec<f32>,
    },
    /// A frame that could not be decoded.
    Malformed {
        /// Its connection.
        peer: PeerId,
        /// Task in its header, or 0.
        task: u64,
    },
    /// The engine wants products.
    Call(Call),
    /// The engine does not want them any more.
    Cancel(CallId),
    /// Answer to [`Action::Compute`]: a row for each pair, or `None` if they could not be made.
    Computed {
        /// The task.
        task: u64,
        /// Rows `[n_pair, width]`.
        rows: Option<Vec<f32>>,
    },
    /// Time has passed.
    Timer,
}

/// An output of the hub.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "most are frames, which a box would allocate once more")]
pub enum Action {
    /// Send a frame.
    Send {
        /// Connection.
        peer: PeerId,
        /// The frame.
        frame: Frame,
    },
    /// Send an ASSIGN: all units that the worker should hold, the most wanted first. The caller adds where their
    /// weights come from.
    Assign {
        /// Connection.
        peer: PeerId,
        /// Epoch of the placement.
        epoch: u32,
        /// Units.
        units: Vec<Unit>,
    },
    /// Close a connection. The hub has already forgotten it: no [`Event::Closed`] is needed.
    Close {
        /// Connection.
        peer: PeerId,
        /// Cause.
        reason: CloseReason,
    },
    /// Products of a call.
    Complete {
        /// The call.
        call: CallId,
        /// Rows `[n_pair, width]`, in order of pairs. With [`HubConfig::sums`] a row may stand for those of its column
        /// that are zero: the weighted sum is the same.
        rows: Vec<f32>,
    },
    /// A call that cannot be answered. The engine may try the step again later.
    Fail {
        /// The call.
        call: CallId,
        /// Cause.
        error: CallError,
    },
    /// Compute products here, and send [`Event::Computed`].
    Compute {
        /// Task.
        task: u64,
        /// Layer of the model.
        layer: u16,
        /// Columns of the engine's whole step.
        step_columns: u32,
        /// Inputs of the call.
        x: Arc<[f32]>,
        /// Pairs.
        pairs: Vec<CallPair>,
        /// Products that are compared with those of a worker; no call waits for them.
        is_check: bool,
    },
    /// Answers of a worker that is found to lie, used since the last one that was checked, are wrong perhaps: the
    /// engine should go back behind the first of these calls.
    Tainted {
        /// The worker.
        worker: WorkerId,
        /// The last call with a good check of that worker; all later ones are in doubt.
        since: Option<CallId>,
    },
    /// Two workers disagree and nobody can tell who is right.
    Undecided {
        /// The workers.
        workers: [WorkerId; 2],
        /// A call in which they do.
        call: CallId,
    },
    /// Send [`Event::Timer`] at this time; an earlier wish is void.
    Wake {
        /// Time on the clock of [`Hub::on`].
        at: Duration,
    },
}

/// Cause of [`Action::Close`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// As many workers as the hub takes.
    Full,
    /// The same worker has another connection.
    Replaced,
    /// The third frame that the protocol does not allow.
    Malformed,
    /// Nothing came for 5 s.
    Silent,
    /// A wrong answer.
    Quarantined,
    /// The worker wanted to leave, and is not needed any more.
    Drained,
}

/// A call that cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No worker that can be used holds an expert.
    #[error("layer {layer}: no worker holds expert {expert}, for {waited:?}")]
    NoHolder {
        /// Layer of the model.
        layer: u16,
        /// First expert without a worker.
        expert: u16,
        /// Time since it was first wanted without one.
        waited: Duration,
    },
    /// Too many calls at once.
    #[error("{limit} calls are in progress, more are not taken")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// A call that the model does not allow.
    #[error("layer {layer}, {what}: found {found}, expected {expected}")]
    Invalid {
        /// Layer of the call.
        layer: u16,
        /// The quantity.
        what: &'static str,
        /// Value found.
        found: u64,
        /// Value, or limit, expected.
        expected: u64,
    },
    /// The hub could not compute experts that no worker holds.
    #[error("layer {layer}: expert {expert} could not be computed by the hub")]
    Local {
        /// Layer of the model.
        layer: u16,
        /// First expert of the task.
        expert: u16,
    },
}

/// Names of timers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The answer of a task is late: hedge.
    Late(u64),
    /// The answer of a task is overdue: its worker is suspect.
    Overdue(u64),
    /// A part of a call has waited for a worker as long as it may.
    Orphan(CallId),
    /// Workers that refused a part may be asked again.
    Retry(CallId),
    /// Look after a connection: PING, PONG, silence.
    Ping(PeerId),
    /// A canary is due.
    Canary(PeerId),
    /// Workers came, left, or changed.
    Rebalance,
    /// Compare speeds with those of the placement.
    Drift,
}

/// The hub of a swarm, without I/O.
#[derive(Debug)]
pub struct Hub {
    config: HubConfig,
    random: Random,
    peers: BTreeMap<PeerId, Peer>,
    /// Connections that hold a unit.
    holders: BTreeMap<Unit, BTreeSet<PeerId>>,
    calls: BTreeMap<CallId, Open>,
    /// Parts of calls that need an answer and have nobody who makes it.
    waiting: BTreeSet<(CallId, u16)>,
    /// Units that were wanted and that nobody could make: since when, and when that was last so.
    orphans: BTreeMap<Unit, (Duration, Duration)>,
    flights: BTreeMap<u64, Flight>,
    next_task: u64,
    /// Class that serves, in exact mode.
    class: Option<Class>,
    placement: Assignment,
    /// Rows asked of each unit, halved with every placement.
    counts: BTreeMap<Unit, f64>,
    timers: Timers<Timer>,
    /// The wake-up that the caller knows.
    wake: Option<Duration>,
    /// Answer over prediction, of all workers.
    answers: Histogram,
    tail: Belief,
    bucket: Bucket,
    norms: BTreeMap<Unit, Norms>,
    probes: BTreeMap<Unit, Probe>,
    /// Digests of the bits of units, by the worker that announced them first in its class.
    canaries: BTreeMap<(Class, Unit), (WorkerId, Digest)>,
    disagreements: Disagreements,
    quarantined: BTreeSet<WorkerId>,
    /// Tasks that nobody waits for any more since this event.
    cancelled: BTreeMap<PeerId, Vec<u64>>,
    stats: Stats,
    /// Of steps of one column, and of others.
    times: [Times; 2],
}

impl Hub {
    /// A hub without workers.
    pub fn new(config: HubConfig) -> Self {
        let bucket = Bucket::new(config.budget);
        let random = Random::new(config.seed);
        Self {
            class: config.local,
            config,
            random,
            peers: BTreeMap::new(),
            holders: BTreeMap::new(),
            calls: BTreeMap::new(),
            waiting: BTreeSet::new(),
            orphans: BTreeMap::new(),
            flights: BTreeMap::new(),
            next_task: 1,
            placement: Assignment::default(),
            counts: BTreeMap::new(),
            timers: Timers::default(),
            wake: None,
            answers: Histogram::default(),
            tail: Belief::default(),
            bucket,
            norms: BTreeMap::new(),
            probes: BTreeMap::new(),
            canaries: BTreeMap::new(),
            cancelled: BTreeMap::new(),
            disagreements: Disagreements::default(),
            quarantined: BTreeSet::new(),
            stats: Stats::default(),
            times: Default::default(),
        }
    }

    /// Takes an event and appends what is to be done. `now` never decreases.
    pub fn on(&mut self, now: Duration, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Joined { peer, worker } => self.join(now, peer, worker, actions),
            Event::Closed { peer } => self.leave(now, peer, actions),
            Event::Frame { peer, frame } => self.frame(now, peer, frame, actions),
            Event::Answer { peer, name, sum, answer, values } => {
                if self.heard(now, peer) {
                    self.result(now, peer, name, (sum, &answer, &values), actions);
                }
            }
            Event::Malformed { peer, task } => self.malformed(now, peer, task, actions),
            Event::Call(call) => self.open(now, call, actions),
            Event::Cancel(call) => self.abandon(now, call, actions),
            Event::Computed { task, rows } => self.computed(now, task, rows, actions),
            Event::Timer => {}
        }
        while let Some(timer) = self.timers.due(now) {
            self.fire(now, timer, actions);
        }
        self.send_cancelled(actions);
        self.dispatch(now, actions);
        let next = self.timers.next();
        if let Some(at) = next.filter(|_| next != self.wake) {
            actions.push(Action::Wake { at });
        }
        self.wake = next;
    }

    /// True if a call with this expert would be answered soon: a worker in service holds it.
    pub fn is_served(&self, layer: u16, expert: u16) -> bool {
        let unit = self.config.shape.unit(layer, expert);
        unit.is_some_and(|unit| self.holders_of(unit).any(|p| p.health.is_up()))
    }

    fn fire(&mut self, now: Duration, timer: Timer, actions: &mut Vec<Action>) {
        match timer {
            Timer::Late(task) => self.late(now, task, actions),
            Timer::Overdue(task) => self.overdue(now, task, actions),
            Timer::Orphan(call) => self.orphaned(now, call, actions),
            Timer::Retry(call) => self.retry(call),
            Timer::Ping(peer) => self.look_after(now, peer, actions),
            Timer::Canary(peer) => self.canary(now, peer, actions),
            Timer::Rebalance => self.rebalance(now, actions),
            Timer::Drift => self.drift(now),
        }
    }

    /// Holders of a unit whose class may serve.
    fn holders_of(&self, unit: Unit) -> impl Iterator<Item = &Peer> {
        let ids = self.holders.get(&unit).into_iter().flatten();
        ids.filter_map(|id| self.peers.get(id)).filter(|p| self.is_of_class(p))
    }

    /// Holders of some units, all of them.
    fn holders_of_all<'a>(&'a self, unit: Unit, others: &'a [Unit]) -> impl Iterator<Item = &'a Peer> {
        self.holders_of(unit).filter(|p| others.iter().all(|unit| p.holds.contains(unit)))
    }

    fn is_of_class(&self, peer: &Peer) -> bool {
        !self.config.exact || self.class.is_none_or(|class| class == peer.joined.class)
    }
}
