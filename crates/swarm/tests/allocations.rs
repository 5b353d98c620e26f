//! Allocations of a hub in steady state: as many for every call, and nothing that stays.
//!
//! A separate binary, because of its counting allocator.
#![allow(unsafe_code, reason = "a global allocator that counts is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use chaski_swarm::{
    Action, Call, CallId, CallPair, Class, Event, HostId, Hub, HubConfig, Joined, LayerShape, ModelShape,
    PeerId, WorkerId,
};
use chaski_wire::{Answer, Body, Control, Dtype, Frame, Have, Hex, Rows};

/// The system's allocator, counting the requests of this thread and the bytes that it has.
struct Counting;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(n_byte: i64) {
    // The thread-local counters are gone while a thread is torn down.
    let _ = REQUESTS.try_with(|n| n.set(n.get() + u64::from(n_byte > 0)));
    let _ = BYTES.try_with(|n| n.set(n.get() + n_byte));
}

// SAFETY: All requests go to the system's allocator unchanged; counting neither allocates nor touches memory
// that it hands out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.realloc(p, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WIDTH: usize = 64;
/// Most requests of the hub's memory for a layer of a token at one worker: the call, its task and its answer. Lower it
/// with an improvement, never raise it.
const PER_CALL: f64 = 80.0;

struct Swarm {
    hub: Hub,
    now: Duration,
    n_call: u64,
    /// Requests within the hub.
    requests: u64,
}

impl Swarm {
    fn new(sums: bool) -> Swarm {
        let layers = vec![LayerShape { layer: 0, n_expert: 32, expert_bytes: 0 }];
        let shape = ModelShape { layers, width: WIDTH as u32, block: 8 };
        let hub = Hub::new(HubConfig { exact: !sums, sums, check: 0.0, ..HubConfig::new(shape, 3) });
        let mut swarm = Swarm { hub, now: Duration::ZERO, n_call: 0, requests: 0 };
        let worker =
            Joined { worker: WorkerId(1), host: HostId(1), class: Class(1), memory: 10, is_even: false };
        swarm.on(Event::Joined { peer: PeerId(1), worker });
        let units = (0..4u16).map(|block| chaski_wire::Unit::Experts {
            layer: 0,
            experts: (8 * block..8 * block + 8).collect(),
        });
        let have = Have { epoch: 0, units: units.collect(), canary: Hex([0; 32]) };
        let frame = Frame::plain(Body::Control(Control::Have(have)));
        swarm.on(Event::Frame { peer: PeerId(1), frame });
        swarm
    }

    fn on(&mut self, event: Event) -> Vec<Action> {
        self.now += Duration::from_micros(50);
        let before = REQUESTS.get();
        let mut actions = Vec::new();
        self.hub.on(self.now, event, &mut actions);
        self.requests += REQUESTS.get() - before;
        actions
    }

    /// A call of one column for eight experts, and its answer.
    fn call(&mut self) {
        self.n_call += 1;
        let first = (self.n_call % 4) as u16;
        let pairs = (0..8).map(|slot| CallPair { expert: 4 * slot + first, column: 0, slot }).collect();
        let x = Arc::from(vec![1.0; WIDTH]);
        let weights = vec![0.125; 8];
        let call = Call { id: CallId(self.n_call), layer: 0, step_columns: 1, x, pairs, weights };
        let actions = self.on(Event::Call(call));
        let mut n_task = 0;
        for action in actions {
            let Action::Send { peer, frame } = action else { continue };
            let Body::Task(task) = &frame.body else { continue };
            let values = vec![0.5; task.n_answer() as usize * WIDTH];
            let rows = Rows::encode(WIDTH as u32, &values, Dtype::F32).expect("finite rows");
            let answer = Answer { rows, queue: 0, queued: 1, running: 10 };
            let name = (frame.task, frame.epoch, frame.layer);
            let sum = task.weights.is_some();
            let done = self.on(Event::Answer { peer, name, sum, answer, values });
            assert!(done.iter().any(|a| matches!(a, Action::Complete { .. })), "one task has all pairs");
            n_task += 1;
        }
        assert_eq!(n_task, 1);
        // PINGs and the like.
        if self.n_call % 100 == 0 {
            let actions = self.on(Event::Timer);
            for action in actions {
                if let Action::Send { peer, frame: Frame { body: Body::Ping(clock), .. } } = action {
                    self.on(Event::Frame { peer, frame: Frame::plain(Body::Pong(clock)) });
                }
            }
        }
    }
}

#[test]
fn a_call_leaves_nothing_behind_and_takes_as_much_as_the_one_before() {
    for sums in [false, true] {
        let mut swarm = Swarm::new(sums);
        (0..2_000).for_each(|_| swarm.call());
        let mut per_call = Vec::new();
        let bytes = BYTES.get();
        for _ in 0..4 {
            swarm.requests = 0;
            (0..2_000).for_each(|_| swarm.call());
            per_call.push(swarm.requests as f64 / 2_000.0);
        }
        let left = BYTES.get() - bytes;
        // The list above, and nodes of maps.
        assert!(left.abs() <= 4_096, "sums {sums}: {left} bytes more after 8,000 calls");
        let (first, last) = (per_call[0], per_call[3]);
        assert!((last / first - 1.0).abs() < 0.02, "sums {sums}: {per_call:?} requests a call");
        assert!(last <= PER_CALL, "sums {sums}: {last} requests a call");
        writeln!(std::io::stderr(), "sums {sums}: {last:.1} requests a call").expect("stderr can be written");
    }
}
