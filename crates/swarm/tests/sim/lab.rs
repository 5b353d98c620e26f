//! A hub and its workers in virtual time: the state machines as they are, over a network that is drawn from a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use chaski_swarm::{
    Action, Call, CallError, CallId, Class, CloseReason, Event, HostId, Hub, HubConfig, Joined, PeerId,
    Random, Unit, Worker, WorkerAction, WorkerConfig, WorkerEvent, WorkerId,
};
use chaski_wire::{Assign, Body, Control, Digest, Frame, Hex, Limits};

use crate::model::{self, Lie};
use crate::network::{Delay, Network};

/// One frame in so many is encoded and decoded on its way.
const ENCODED: u64 = 16;

/// A worker's machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) host: u64,
    pub(crate) class: u64,
    pub(crate) memory: u64,
    /// Time of a task, and of each pair beside it.
    pub(crate) service: Delay,
    pub(crate) per_pair: Duration,
    /// Time to load a unit.
    pub(crate) load: Duration,
    pub(crate) lie: Option<Lie>,
    /// Part of the answers that are lies, if it lies.
    pub(crate) lies_in: f64,
    /// Parts of the frames to the hub that are corrupt, or come twice.
    pub(crate) corrupt: f64,
    pub(crate) twice: f64,
    /// Part of the answers with a wrong epoch.
    pub(crate) wrong_epoch: f64,
    /// Part of the loads that fail.
    pub(crate) load_fails: f64,
}

impl Machine {
    /// An honest machine without faults.
    pub(crate) fn new(host: u64, memory: u64) -> Self {
        Self {
            host,
            class: 0,
            memory,
            service: Delay::Constant { ms: 0.1 },
            per_pair: Duration::from_micros(20),
            load: Duration::from_millis(5),
            lie: None,
            lies_in: 1.0,
            corrupt: 0.0,
            twice: 0.0,
            wrong_epoch: 0.0,
            load_fails: 0.0,
        }
    }
}

/// A worker on its machine.
struct Node {
    machine: Machine,
    worker: Worker,
    wake: Option<Duration>,
    /// Counts restarts: what was begun before one is void.
    life: u32,
    is_alive: bool,
    /// Nothing is done before (SIGSTOP).
    stopped: Duration,
    link: Option<PeerId>,
    /// Units that were told to load and not freed since.
    loaded: u64,
    is_visible: bool,
}

/// A connection.
struct Link {
    node: usize,
    /// The hub has not closed it, or learned that it is closed.
    is_open: bool,
    /// Time of the last delivery each way, on the data socket and on the control socket.
    last: [[Duration; 2]; 2],
    /// Nothing is delivered before, each way.
    cut: [Duration; 2],
}

/// An event of the world.
enum Happening {
    ToHub(PeerId, Box<Event>),
    ToWorker(usize, PeerId, Box<WorkerEvent>),
    /// The answer of a worker's own device or store.
    Own(usize, u32, Box<WorkerEvent>),
    Local(Box<Event>),
    Restart(usize),
    /// A note that the caller set.
    Note(u64),
}

struct Entry(Duration, u64, Happening);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Something that the caller learns from the world.
#[derive(Debug)]
pub(crate) enum News {
    Complete(CallId, Vec<f32>),
    Fail(CallId, CallError),
    Tainted(WorkerId, Option<CallId>),
    Undecided,
    Closed(WorkerId, CloseReason),
    Note(u64),
}

/// Counters of the network.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) n_task: u64,
    pub(crate) n_result: u64,
    pub(crate) n_started: u64,
    pub(crate) n_local: u64,
}

/// The world.
pub(crate) struct Lab {
    pub(crate) now: Duration,
    pub(crate) random: Random,
    pub(crate) hub: Hub,
    pub(crate) traffic: Traffic,
    pub(crate) news: Vec<News>,
    config: HubConfig,
    network: Network,
    /// Time of the hub's own products.
    local: Delay,
    hub_wake: Option<Duration>,
    nodes: Vec<Node>,
    links: BTreeMap<PeerId, Link>,
    next_link: u64,
    heap: BinaryHeap<Reverse<Entry>>,
    n_entry: u64,
    last_task: u64,
    hub_life: u64,
}

impl Lab {
    pub(crate) fn new(config: HubConfig, network: Network, machines: Vec<Machine>, seed: u64) -> Self {
        let mut lab = Self {
            now: Duration::ZERO,
            random: Random::new(seed ^ 0x5EED),
            hub: Hub::new(config.clone()),
            traffic: Traffic::default(),
            news: Vec::new(),
            config,
            network,
            local: Delay::Exponential { ms: 4.0 },
            hub_wake: None,
            nodes: Vec::new(),
            links: BTreeMap::new(),
            next_link: 1,
            heap: BinaryHeap::new(),
            n_entry: 0,
            last_task: 0,
            hub_life: 0,
        };
        machines.into_iter().for_each(|machine| lab.add(machine));
        lab
    }

    /// Adds a worker, which joins at once.
    pub(crate) fn add(&mut self, machine: Machine) {
        let seed = self.random.bits();
        let worker = self.worker(&machine, seed);
        self.nodes.push(Node {
            machine,
            worker,
            wake: Some(self.now),
            life: 0,
            is_alive: true,
            stopped: Duration::ZERO,
            link: None,
            loaded: 0,
            is_visible: true,
        });
    }

    fn worker(&self, machine: &Machine, seed: u64) -> Worker {
        let shape = self.config.shape.clone();
        Worker::new(WorkerConfig { shape, memory: machine.memory, slots: None, n_queue: 4, seed })
    }

    pub(crate) fn n_node(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn machine(&mut self, node: usize) -> &mut Machine {
        &mut self.nodes[node].machine
    }

    pub(crate) fn memory(&self, node: usize) -> u64 {
        self.nodes[node].machine.memory
    }

    pub(crate) fn is_visible(&self, node: usize) -> bool {
        self.nodes[node].is_visible
    }

    pub(crate) fn is_alive(&self, node: usize) -> bool {
        self.nodes[node].is_alive
    }

    pub(crate) fn note(&mut self, after: Duration, note: u64) {
        self.push(self.now + after, Happening::Note(note));
    }

    fn push(&mut self, at: Duration, happening: Happening) {
        self.n_entry += 1;
        self.heap.push(Reverse(Entry(at, self.n_entry, happening)));
    }

    /// Time of the next thing to happen.
    pub(crate) fn next(&self) -> Option<Duration> {
        let wakes = self.nodes.iter().filter(|n| n.is_alive).filter_map(|n| Some(n.wake?.max(n.stopped)));
        let heap = self.heap.peek().map(|Reverse(e)| e.0);
        wakes.chain(self.hub_wake).chain(heap).min().map(|at| at.max(self.now))
    }

    /// Has the next thing happen; false if it would be after `end`.
    pub(crate) fn step(&mut self, end: Duration) -> bool {
        let Some(at) = self.next().filter(|at| *at <= end) else { return false };
        self.now = at;
        if self.hub_wake.is_some_and(|wake| wake <= at) {
            self.hub_wake = None;
            self.tell_hub(Event::Timer);
        } else if let Some(node) = (self.nodes.iter())
            .position(|n| n.is_alive && n.wake.is_some_and(|wake| wake.max(n.stopped) <= at))
        {
            self.nodes[node].wake = None;
            self.tell_worker(node, WorkerEvent::Timer);
        } else if let Some(Reverse(Entry(_, _, happening))) = self.heap.pop() {
            self.happen(happening);
        }
        true
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::ToHub(link, event) => {
                if self.links.get(&link).is_some_and(|l| l.is_open) {
                    if matches!(*event, Event::Closed { .. }) {
                        self.links.remove(&link);
                    }
                    self.tell_hub(*event);
                }
            }
            Happening::ToWorker(node, link, event) => {
                let n = &self.nodes[node];
                if !n.is_alive || n.link != Some(link) {
                    return;
                }
                if n.stopped > self.now {
                    return self.push(n.stopped, Happening::ToWorker(node, link, event));
                }
                if matches!(*event, WorkerEvent::Closed) {
                    self.nodes[node].link = None;
                }
                self.tell_worker(node, *event);
            }
            Happening::Own(node, life, event) => {
                let n = &self.nodes[node];
                if !n.is_alive || n.life != life {
                    return;
                }
                if n.stopped > self.now {
                    return self.push(n.stopped, Happening::Own(node, life, event));
                }
                self.tell_worker(node, *event);
            }
            Happening::Local(event) => self.tell_hub(*event),
            Happening::Restart(node) => self.restart(node),
            Happening::Note(note) => self.news.push(News::Note(note)),
        }
    }

    pub(crate) fn call(&mut self, call: Call) {
        self.tell_hub(Event::Call(call));
    }

    pub(crate) fn cancel(&mut self, call: CallId) {
        self.tell_hub(Event::Cancel(call));
    }

    fn tell_hub(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.hub.on(self.now, event, &mut actions);
        actions.into_iter().for_each(|action| self.perform(action));
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send { peer, frame } => self.send_to_worker(peer, frame),
            Action::Assign { peer, epoch, units } => {
                let shape = &self.config.shape;
                let named = |u: Unit| chaski_wire::Unit::Experts {
                    layer: u.layer,
                    experts: shape.experts(u).collect(),
                };
                let units = units.into_iter().map(named).collect();
                let assign = Assign { epoch, more: false, units, files: Vec::new(), tensors: Vec::new() };
                self.send_to_worker(peer, Frame::plain(Body::Control(Control::Assign(assign))));
            }
            Action::Close { peer, reason } => {
                if let Some(link) = self.links.remove(&peer) {
                    self.news.push(News::Closed(WorkerId(link.node as u64), reason));
                    let at = self.arrival(&link, 0, 0);
                    self.push(at, Happening::ToWorker(link.node, peer, Box::new(WorkerEvent::Closed)));
                }
            }
            Action::Complete { call, rows } => self.news.push(News::Complete(call, rows)),
            Action::Fail { call, error } => self.news.push(News::Fail(call, error)),
            Action::Compute { task, layer, x, pairs, .. } => {
                self.traffic.n_local += 1;
                let class = self.config.local.expect("a hub that can compute").0;
                let width = self.config.shape.width as usize;
                let rows = Some(model::expected(layer, &x, width, &pairs, class));
                let at = self.now + self.local.draw(&mut self.random);
                self.push(at, Happening::Local(Box::new(Event::Computed { task, rows })));
            }
            Action::Tainted { worker, since } => self.news.push(News::Tainted(worker, since)),
            Action::Undecided { .. } => self.news.push(News::Undecided),
            Action::Wake { at } => self.hub_wake = Some(at),
        }
    }

    /// When a frame arrives that is sent now.
    fn arrival(&mut self, link: &Link, way: usize, socket: usize) -> Duration {
        let delay = if way == 0 { self.network.to_worker } else { self.network.to_hub };
        let at = (self.now + delay.draw(&mut self.random)).max(link.cut[way]);
        if self.network.is_ordered { at.max(link.last[way][socket]) } else { at }
    }

    /// The same, over a connection in the table.
    fn arrive(&mut self, peer: PeerId, way: usize, frame: &Frame) -> Option<Duration> {
        let socket = usize::from(matches!(frame.body, Body::Control(_)));
        let link = self.links.remove(&peer)?;
        let at = self.arrival(&link, way, socket);
        self.links.insert(peer, link);
        self.links.get_mut(&peer).expect("it was inserted").last[way][socket] = at;
        Some(at)
    }

    fn send_to_worker(&mut self, peer: PeerId, frame: Frame) {
        if let Body::Task(_) = frame.body {
            assert!(frame.task > self.last_task, "task ids grow");
            self.last_task = frame.task;
            self.traffic.n_task += 1;
        }
        let frame = self.over_the_wire(frame);
        let Some(at) = self.arrive(peer, 0, &frame) else { return };
        let node = self.links[&peer].node;
        self.push(at, Happening::ToWorker(node, peer, Box::new(WorkerEvent::Frame(frame))));
    }

    fn send_to_hub(&mut self, node: usize, mut frame: Frame) {
        let Some(peer) = self.nodes[node].link.filter(|peer| self.links.contains_key(peer)) else { return };
        let machine = self.nodes[node].machine.clone();
        let is_result = matches!(frame.body, Body::Result { .. });
        self.traffic.n_result += u64::from(is_result);
        let is_nan = is_result && machine.lie == Some(Lie::Nan) && self.random.happens(machine.lies_in);
        if is_result && self.random.happens(machine.wrong_epoch) {
            frame.epoch += 1;
        }
        let frame = self.over_the_wire(frame);
        let Some(at) = self.arrive(peer, 1, &frame) else { return };
        if is_nan || self.random.happens(machine.corrupt) {
            let task = if is_nan || self.random.happens(0.5) { frame.task } else { 0 };
            return self.push(at, Happening::ToHub(peer, Box::new(Event::Malformed { peer, task })));
        }
        if self.random.happens(machine.twice) {
            let event = Event::Frame { peer, frame: frame.clone() };
            self.push(at, Happening::ToHub(peer, Box::new(event)));
        }
        self.push(at, Happening::ToHub(peer, Box::new(Event::Frame { peer, frame })));
    }

    /// Some frames are encoded and decoded: all that the state machines send must be allowed.
    fn over_the_wire(&mut self, frame: Frame) -> Frame {
        if self.random.below(ENCODED) > 0 {
            return frame;
        }
        let limits = Limits::default();
        let parts = frame.encode(&limits, true).expect("a frame of a state machine is allowed");
        let decoded = Frame::decode(&parts[0], &limits).expect("frames decode");
        assert_eq!(decoded, frame);
        decoded
    }

    fn tell_worker(&mut self, node: usize, event: WorkerEvent) {
        let mut actions = Vec::new();
        self.nodes[node].worker.on(self.now, event, &mut actions);
        actions.into_iter().for_each(|action| self.perform_at(node, action));
    }

    fn perform_at(&mut self, node: usize, action: WorkerAction) {
        let life = self.nodes[node].life;
        match action {
            WorkerAction::Send(frame) => self.send_to_hub(node, frame),
            WorkerAction::Compute { task, layer, body } => {
                self.traffic.n_started += 1;
                let machine = self.nodes[node].machine.clone();
                let lie = machine.lie.filter(|_| self.random.happens(machine.lies_in));
                let rows = Some(model::answer(layer, &body, machine.class, lie));
                let time =
                    machine.service.draw(&mut self.random) + machine.per_pair * body.pairs.len() as u32;
                let event = Box::new(WorkerEvent::Computed { task, rows });
                self.push(self.now + time, Happening::Own(node, life, event));
            }
            WorkerAction::Load(unit) => {
                let machine = self.nodes[node].machine.clone();
                let canary = (!self.random.happens(machine.load_fails)).then(|| canary(unit, machine.class));
                if canary.is_some() {
                    self.nodes[node].loaded += self.config.shape.bytes(unit);
                    assert!(self.nodes[node].loaded <= machine.memory, "worker {node} exceeds its memory");
                }
                let event = Box::new(WorkerEvent::Loaded { unit, canary });
                self.push(self.now + machine.load, Happening::Own(node, life, event));
            }
            WorkerAction::Unload(unit) => self.nodes[node].loaded -= self.config.shape.bytes(unit),
            WorkerAction::Connect => self.connect(node),
            WorkerAction::Close => {
                self.close(node, false);
                self.push(self.now, Happening::Own(node, life, Box::new(WorkerEvent::Closed)));
            }
            WorkerAction::Stop => self.nodes[node].is_alive = false,
            WorkerAction::Wake { at } => self.nodes[node].wake = Some(at),
        }
    }

    /// A connection is made: the hub says WELCOME, and the worker learns it.
    fn connect(&mut self, node: usize) {
        let peer = PeerId(self.next_link);
        self.next_link += 1;
        let zero = [[Duration::ZERO; 2]; 2];
        let cut = [self.nodes[node].stopped; 2];
        let link = Link { node, is_open: true, last: zero, cut };
        let at = self.arrival(&link, 1, 1);
        let then = at + self.network.to_worker.draw(&mut self.random);
        let last = [[then; 2], [then; 2]];
        self.links.insert(peer, Link { last, ..link });
        self.nodes[node].link = Some(peer);
        let Machine { host, class, memory, .. } = self.nodes[node].machine;
        let worker = Joined {
            worker: WorkerId(node as u64),
            host: HostId(host),
            class: Class(class),
            memory,
            is_even: false,
        };
        self.push(at, Happening::ToHub(peer, Box::new(Event::Joined { peer, worker })));
        // Before what the hub sends in its answer.
        self.push(at, Happening::ToWorker(node, peer, Box::new(WorkerEvent::Connected)));
    }

    /// The worker's end of a connection closes; the hub learns it, unless the machine lost power.
    fn close(&mut self, node: usize, silent: bool) {
        let Some(peer) = self.nodes[node].link.take() else { return };
        if silent {
            return;
        }
        if let Some(link) = self.links.remove(&peer) {
            let at = self.arrival(&link, 1, 0);
            self.links.insert(peer, link);
            self.push(at, Happening::ToHub(peer, Box::new(Event::Closed { peer })));
        }
    }

    /// Kills a worker; another one begins on its machine after some time, without units.
    pub(crate) fn kill(&mut self, node: usize, silent: bool, restart: Option<Duration>) {
        self.close(node, silent);
        self.nodes[node].is_alive = false;
        self.nodes[node].life += 1;
        if let Some(after) = restart {
            self.push(self.now + after, Happening::Restart(node));
        }
    }

    fn restart(&mut self, node: usize) {
        let seed = self.random.bits();
        let worker = self.worker(&self.nodes[node].machine, seed);
        let n = &mut self.nodes[node];
        (n.worker, n.is_alive, n.wake, n.loaded, n.link) = (worker, true, Some(self.now), 0, None);
    }

    /// Stops a worker for some time, as SIGSTOP does.
    pub(crate) fn stop(&mut self, node: usize, time: Duration) {
        self.nodes[node].stopped = self.nodes[node].stopped.max(self.now + time);
    }

    /// Holds up what a worker sends, or gets, for some time.
    pub(crate) fn cut(&mut self, node: usize, way: usize, time: Duration) {
        if let Some(link) = self.nodes[node].link.and_then(|peer| self.links.get_mut(&peer)) {
            link.cut[way] = link.cut[way].max(self.now + time);
        }
    }

    /// Has a worker leave politely.
    pub(crate) fn leave(&mut self, node: usize) {
        if self.nodes[node].is_alive {
            self.tell_worker(node, WorkerEvent::Leave);
        }
    }

    /// A tab goes to the background, or comes back.
    pub(crate) fn show(&mut self, node: usize, visible: bool) {
        if self.nodes[node].is_alive {
            self.nodes[node].is_visible = visible;
            let state = chaski_wire::State { visible, throttled: !visible, queue: 0, free_mib: 0 };
            self.tell_worker(node, WorkerEvent::State(state));
        }
    }

    /// The hub begins anew and knows nothing.
    pub(crate) fn restart_hub(&mut self) {
        self.hub_life += 1;
        self.hub = Hub::new(HubConfig { seed: self.config.seed ^ self.hub_life, ..self.config.clone() });
        (self.hub_wake, self.last_task) = (None, 0);
        let links = std::mem::take(&mut self.links);
        for (peer, link) in links {
            let at = self.arrival(&link, 0, 0);
            self.push(at, Happening::ToWorker(link.node, peer, Box::new(WorkerEvent::Closed)));
        }
        // Products of the former hub are nobody's.
        self.heap.retain(|Reverse(Entry(_, _, h))| !matches!(h, Happening::Local(_)));
    }

    /// Bounds of memory that hold at any time.
    pub(crate) fn check_bounds(&self, n_call: usize, n_part: usize) {
        let [calls, waiting, flights, timers] = self.hub.sizes();
        let n_peer = self.links.len() + 1;
        assert!(calls <= n_call, "{calls} calls");
        assert!(waiting <= n_call * n_part, "{waiting} parts wait");
        // At each worker 4 tasks and 16 that are settled and may be disputed, at the hub its own products and checks.
        let most = n_peer * (4 + 2 * 16) + calls * n_part + 32;
        assert!(flights <= most, "{flights} tasks in flight, at most {most}");
        assert!(timers <= 2 * flights + 2 * calls + 2 * n_peer + 2, "{timers} timers");
        for (i, node) in self.nodes.iter().enumerate() {
            assert!(node.worker.sizes()[0] <= 4, "worker {i}: {} tasks wait", node.worker.sizes()[0]);
        }
    }
}

/// A digest for a unit and a class.
fn canary(unit: Unit, class: u64) -> Digest {
    let mut bytes = [0; 32];
    bytes[..2].copy_from_slice(&unit.layer.to_le_bytes());
    bytes[2..4].copy_from_slice(&unit.block.to_le_bytes());
    bytes[4..12].copy_from_slice(&class.to_le_bytes());
    Hex(bytes)
}
