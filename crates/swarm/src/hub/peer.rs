//! A connected worker, as the hub sees it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Joined;
use crate::estimate::Mean;
use crate::health::Health;
use crate::unit::{CallId, PeerId, Unit};

/// Assumed before the first sample, in seconds: round trip, and product of an expert and a column.
const RTT: f64 = 1e-3;
const PER_PAIR: f64 = 2e-4;
/// Rows of at least so many bytes tell the time of a byte; fewer tell the round trip.
const LARGE: u64 = 64 << 10;
/// Time over which the load of a worker is averaged, in seconds.
const LOAD_TIME: f64 = 1.0;

/// A connected worker.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: PeerId,
    pub(super) joined: Joined,
    pub(super) holds: BTreeSet<Unit>,
    /// Units of the last ASSIGN, the most wanted first.
    pub(super) told: Option<Vec<Unit>>,
    /// When the last ASSIGN was sent, or the last HAVE came.
    pub(super) progress: Duration,
    pub(super) health: Health,
    /// Seconds of a round trip without the work.
    pub(super) rtt: Mean,
    /// Seconds of a pair.
    pub(super) per_pair: Mean,
    /// Seconds of a byte of large rows.
    per_byte: Mean,
    /// Seconds of work in the last second or so, and when that was.
    load: (f64, Duration),
    /// Tasks whose answers are wanted.
    pub(super) flights: BTreeSet<u64>,
    /// Tasks whose answers are not wanted any more, but may come.
    pub(super) settled: BTreeSet<u64>,
    /// Pairs and bytes of `flights`.
    pub(super) n_pair: usize,
    pub(super) n_byte: u64,
    /// Until when the worker has said that it is busy, and until when it works on cancelled tasks as far as is known.
    pub(super) busy_until: Duration,
    /// Frames that the protocol does not allow.
    pub(super) strikes: u32,
    pub(super) hidden: bool,
    pub(super) draining: bool,
    /// When the PING that is not answered was sent.
    pub(super) ping: Option<Duration>,
    /// When the last frame came.
    pub(super) heard: Duration,
    /// The last call of which an answer was checked and right.
    pub(super) clean: Option<CallId>,
    /// Answers that were checked and right.
    pub(super) n_clean: u32,
    /// Rows per second that the placement counts with.
    pub(super) placed_speed: f64,
}

impl Peer {
    pub(super) fn new(id: PeerId, joined: Joined, now: Duration) -> Self {
        Self {
            id,
            joined,
            holds: BTreeSet::new(),
            told: None,
            progress: now,
            health: Health::default(),
            rtt: Mean::assumed(RTT),
            per_pair: Mean::assumed(PER_PAIR),
            per_byte: Mean::assumed(0.0),
            load: (0.0, now),
            flights: BTreeSet::new(),
            settled: BTreeSet::new(),
            n_pair: 0,
            n_byte: 0,
            busy_until: Duration::ZERO,
            strikes: 0,
            hidden: false,
            draining: false,
            ping: None,
            heard: now,
            clean: None,
            n_clean: 0,
            placed_speed: 1.0 / PER_PAIR,
        }
    }

    /// Predicted seconds until the answer to a task of so many pairs and bytes, with what the worker has to do before.
    pub(super) fn predicted(&self, now: Duration, n_pair: usize, n_byte: u64) -> f64 {
        let queue = self.per_pair.value() * (self.n_pair + n_pair) as f64;
        let busy = self.busy_until.saturating_sub(now).as_secs_f64();
        self.rtt.value() + queue + busy + self.per_byte.value() * (self.n_byte + n_byte) as f64
    }

    /// Seconds that a task takes the worker.
    pub(super) fn service(&self, n_pair: usize) -> f64 {
        self.per_pair.value() * n_pair as f64
    }

    /// Takes the times of an answer: seconds since the task was sent, in the queue, and of the work.
    pub(super) fn sample(&mut self, now: Duration, n_pair: usize, n_byte: u64, times: (f64, f64, f64)) {
        let (whole, queued, running) = times;
        let net = (whole - queued - running).max(0.0);
        self.per_pair.add(running / n_pair.max(1) as f64);
        if n_byte < LARGE {
            self.rtt.add(net);
        } else {
            self.per_byte.add((net - self.rtt.value()).max(0.0) / n_byte as f64);
        }
        let on_link = self.per_byte.value() * n_byte as f64;
        self.load = (self.load(now) + (running + on_link) / LOAD_TIME, now);
    }

    /// The busy part of the worker's time, of its link or its CPU.
    pub(super) fn load(&self, now: Duration) -> f64 {
        self.load.0 * (-now.saturating_sub(self.load.1).as_secs_f64() / LOAD_TIME).exp()
    }

    /// Rows per second.
    pub(super) fn speed(&self) -> f64 {
        1.0 / self.per_pair.value().max(1e-9)
    }

    /// True if the worker has nothing to do.
    pub(super) fn is_idle(&self, now: Duration) -> bool {
        self.flights.is_empty() && self.busy_until <= now
    }

    /// True if units may be placed here.
    pub(super) fn is_placed(&self) -> bool {
        !self.draining && !self.hidden
    }
}
