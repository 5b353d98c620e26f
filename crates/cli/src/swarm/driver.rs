//! The hub's state machine with its connections: events go in under one lock, actions go to channels.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chaski::experts::{ExpertCall, ExpertError, Home};
use chaski_swarm::{
    Action, Call, CallError, CallId, CallPair, CloseReason, Event, Hub, HubConfig, Joined, PeerId, Status,
    Unit, WorkerId, WorkerStatus,
};
use chaski_wire::{Frame, Hex};
use tokio::sync::{Notify, mpsc, oneshot};

use super::account::Account;
use super::local::{Locals, Work};

/// A message for the task that writes to a worker.
#[allow(clippy::large_enum_variant, reason = "most are frames, which a box would allocate once more")]
#[derive(Debug)]
pub(crate) enum Out {
    /// A frame.
    Frame(Frame),
    /// The end of the connection.
    Close(CloseReason),
}

/// A worker's connection.
pub(crate) struct Connection {
    /// Frames to it.
    pub(crate) out: mpsc::UnboundedSender<Out>,
    /// Assignments to it, whose weights have to be hashed first.
    pub(crate) assign: mpsc::UnboundedSender<(u32, Vec<Unit>)>,
    /// Key of its requests for weights.
    pub(crate) key: Hex<16>,
    /// Name of its machine, to be shown.
    pub(crate) name: String,
    /// Device that computes.
    pub(crate) device: String,
    /// Units of all its assignments.
    pub(crate) units: BTreeSet<Unit>,
}

/// The end of a call, and when it was.
type Completed = (Result<Vec<f32>, CallError>, Instant);

struct State {
    hub: Hub,
    peers: HashMap<PeerId, Connection>,
    calls: HashMap<CallId, oneshot::Sender<Completed>>,
    account: Account,
    next_peer: u64,
    next_call: u64,
    wake: Option<Duration>,
    /// Warnings that nobody has read.
    warnings: Vec<String>,
}

/// The hub of a running command.
pub(crate) struct Core {
    begin: Instant,
    state: Mutex<State>,
    /// The time of the next timer has changed.
    timer: Notify,
    /// Something has changed that somebody may wait for.
    changed: Notify,
    /// Makes products here, if anybody does.
    local: Option<Locals>,
    /// The engine has no experts itself.
    is_bare: bool,
}

impl Core {
    /// A hub without workers; `local` computes what no worker can, also for an engine that has no experts (`is_bare`).
    pub(crate) fn new(config: HubConfig, local: Option<Locals>, is_bare: bool) -> Core {
        let state = State {
            hub: Hub::new(config),
            peers: HashMap::new(),
            calls: HashMap::new(),
            account: Account::default(),
            next_peer: 1,
            next_call: 1,
            wake: None,
            warnings: Vec::new(),
        };
        Core {
            begin: Instant::now(),
            state: Mutex::new(state),
            timer: Notify::new(),
            changed: Notify::new(),
            local,
            is_bare,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event, and does what follows from it.
    pub(crate) fn on(self: &Arc<Self>, event: Event) {
        let mut state = self.lock();
        self.step(&mut state, event);
    }

    fn step(self: &Arc<Self>, state: &mut State, event: Event) {
        let mut actions = Vec::new();
        // The clock is read within the lock, so that it never goes back.
        state.hub.on(self.begin.elapsed(), event, &mut actions);
        for action in actions {
            self.perform(state, action);
        }
        self.changed.notify_waiters();
    }

    fn perform(self: &Arc<Self>, state: &mut State, action: Action) {
        match action {
            Action::Send { peer, frame } => {
                if let Some(connection) = state.peers.get(&peer) {
                    // A writer that has ended is a connection that closes, which its reader tells.
                    let _ = connection.out.send(Out::Frame(frame));
                }
            }
            Action::Assign { peer, epoch, units } => {
                if let Some(connection) = state.peers.get_mut(&peer) {
                    connection.units.extend(units.iter().copied());
                    let _ = connection.assign.send((epoch, units));
                }
            }
            Action::Close { peer, reason } => {
                if let Some(connection) = state.peers.remove(&peer) {
                    let _ = connection.out.send(Out::Close(reason));
                }
            }
            Action::Complete { call, rows } => answer(state, call, Ok(rows)),
            Action::Fail { call, error } => answer(state, call, Err(error)),
            Action::Compute { task, layer, step_columns, x, pairs, is_check } => {
                let core = self.clone();
                let local = self.local.as_ref().expect("a hub that computes has a class of its own");
                let local = if is_check { &local.checks } else { &local.calls };
                local.compute(Work { layer, step_columns, x, pairs }, move |rows| {
                    core.on(Event::Computed { task, rows });
                });
            }
            Action::Tainted { worker, .. } => state.warnings.push(format!(
                "worker {:016x} answered wrongly: text since the last check of its answers may be wrong",
                worker.0
            )),
            Action::Undecided { workers: [a, b], .. } => state.warnings.push(format!(
                "workers {:016x} and {:016x} disagree, and nobody can tell which is right",
                a.0, b.0
            )),
            Action::Wake { at } => {
                state.wake = Some(at);
                self.timer.notify_one();
            }
        }
    }

    /// A connection whose worker has proved the token; `None` if the hub closed it at once.
    pub(crate) fn join(self: &Arc<Self>, connection: Connection, worker: Joined) -> PeerId {
        let mut state = self.lock();
        let peer = PeerId(state.next_peer);
        state.next_peer += 1;
        state.peers.insert(peer, connection);
        self.step(&mut state, Event::Joined { peer, worker });
        peer
    }

    /// A connection is closed.
    pub(crate) fn leave(self: &Arc<Self>, peer: PeerId) {
        let mut state = self.lock();
        state.peers.remove(&peer);
        self.step(&mut state, Event::Closed { peer });
    }

    /// Sends timer events when their time has come; never ready.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        loop {
            let wake = self.lock().wake;
            let Some(at) = wake else {
                self.timer.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until((self.begin + at).into()) => {
                    let mut state = self.lock();
                    if state.wake.is_some_and(|wake| self.begin + wake <= Instant::now()) {
                        state.wake = None;
                        self.step(&mut state, Event::Timer);
                    }
                }
                () = self.timer.notified() => {}
            }
        }
    }

    /// Homes of experts: away if a worker in service holds them, or the engine has none.
    pub(crate) fn homes(&self, layer: u16, wanted: &[u16]) -> Vec<Home> {
        let state = self.lock();
        let home = |expert: &u16| match self.is_bare || state.hub.is_served(layer, *expert) {
            true => Home::Away,
            false => Home::Here,
        };
        wanted.iter().map(home).collect()
    }

    /// Starts a call.
    pub(crate) fn call(self: &Arc<Self>, call: ExpertCall) -> Calling {
        let begin = Instant::now();
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        state.account.begin(begin, call.step_columns);
        let id = CallId(state.next_call);
        state.next_call += 1;
        state.calls.insert(id, sender);
        let pair = |p: &chaski::experts::Pair| CallPair { expert: p.expert, column: p.column, slot: p.slot };
        let pairs = call.pairs.iter().map(pair).collect();
        let (layer, step_columns) = (call.layer, call.step_columns);
        let (x, weights) = (call.x.into(), call.weights);
        self.step(&mut state, Event::Call(Call { id, layer, step_columns, x, pairs, weights }));
        Calling { core: self.clone(), id, layer, step_columns, begin, receiver }
    }

    /// Waits until `n` workers hold all that they should, and every expert for which a worker has room has one. Returns
    /// units for which nobody has room.
    pub(crate) async fn ready(&self, n: usize) -> Vec<Unit> {
        loop {
            let changed = self.changed.notified();
            let status = self.lock().hub.status();
            if is_ready(&status, n) {
                return status.units.iter().filter(|u| u.n_placed == 0).map(|u| u.unit).collect();
            }
            changed.await;
        }
    }

    /// How far workers are, of which `n` are waited for.
    pub(crate) fn progress(&self, n: usize) -> String {
        let status = self.lock().hub.status();
        let assigned: usize = status.workers.iter().filter_map(|w| w.n_assigned).sum();
        let held: usize = status.workers.iter().map(|w| w.n_unit).sum();
        let n_unit = status.units.len();
        let served = status.units.iter().filter(|u| u.n_up > 0).count();
        format!(
            "{} of {n} workers have joined, {held} of the {assigned} copies that they should hold are loaded, {served} of \
             {n_unit} units have a worker",
            status.workers.len()
        )
    }

    /// Units of the worker with a key, whose weights it may fetch.
    pub(crate) fn units_of(&self, key: &Hex<16>) -> Option<BTreeSet<Unit>> {
        use subtle::ConstantTimeEq as _;
        let state = self.lock();
        let found = state.peers.values().find(|c| bool::from(c.key.0.ct_eq(&key.0)));
        found.map(|connection| connection.units.clone())
    }

    /// Reads something of the hub and its connections.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&Hub, &HashMap<PeerId, Connection>) -> T) -> T {
        let state = self.lock();
        read(&state.hub, &state.peers)
    }

    /// Where the time of calls went.
    pub(crate) fn account(&self) -> Vec<String> {
        let state = self.lock();
        state.account.lines(&state.hub.status().times)
    }

    /// Warnings since the last time.
    pub(crate) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().warnings)
    }
}

/// True if at least `n` workers were told what to hold, hold it, and every unit that has room somewhere is served.
fn is_ready(status: &Status, n: usize) -> bool {
    let is_loaded = |w: &WorkerStatus| w.n_assigned.is_some_and(|n_assigned| w.n_unit >= n_assigned);
    let is_served = status.units.iter().all(|unit| unit.n_up > 0 || unit.n_placed == 0);
    is_served && status.workers.len() >= n && status.workers.iter().all(is_loaded)
}

fn answer(state: &mut State, call: CallId, result: Result<Vec<f32>, CallError>) {
    if let Some(sender) = state.calls.remove(&call) {
        // Nobody waits for a call whose future was dropped.
        let _ = sender.send((result, Instant::now()));
    }
}

/// A call under way; dropping it cancels the call.
pub(crate) struct Calling {
    core: Arc<Core>,
    id: CallId,
    layer: u16,
    step_columns: u32,
    begin: Instant,
    receiver: oneshot::Receiver<Completed>,
}

impl Calling {
    /// The rows.
    ///
    /// # Errors
    /// [`ExpertError::Failed`] with a [`CallError`], or if the hub has ended.
    pub(crate) async fn rows(mut self) -> Result<Vec<f32>, ExpertError> {
        let layer = self.layer;
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| ExpertError::Failed { layer, source };
        match (&mut self.receiver).await {
            Ok((Ok(rows), complete)) => {
                let (now, mut state) = (Instant::now(), self.core.lock());
                state.account.end(now, self.begin, complete, self.step_columns);
                Ok(rows)
            }
            Ok((Err(error), _)) => Err(failed(Box::new(error))),
            Err(ended) => Err(failed(Box::new(ended))),
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        state.account.over();
        if state.calls.remove(&self.id).is_some() {
            self.core.step(&mut state, Event::Cancel(self.id));
        }
    }
}

/// Identity of a worker from its own id.
pub(crate) fn worker_id(id: &Hex<16>) -> WorkerId {
    let bytes = id.0.first_chunk().expect("16 bytes have a first 8");
    WorkerId(u64::from_le_bytes(*bytes))
}
