//! Counters and a description of a swarm, for people.

use std::time::Duration;

use super::{Hub, Times};
use crate::unit::{Class, HostId, Unit, WorkerId};

/// Counters since the hub began.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls that began.
    pub n_call: u64,
    /// Calls that failed.
    pub n_failed: u64,
    /// Tasks sent to workers, of every kind.
    pub n_task: u64,
    /// Hedges that were sent because an answer was late.
    pub n_hedge_late: u64,
    /// Late hedges that were faster.
    pub n_hedge_won: u64,
    /// Hedges that were sent together with the first task.
    pub n_hedge_at_once: u64,
    /// Products that workers summed with others: rows that were not sent.
    pub n_sum: u64,
    /// Parts of sums that were split since nobody held all of their units any more.
    pub n_split: u64,
    /// Tasks cancelled.
    pub n_cancel: u64,
    /// Tasks that the hub did itself.
    pub n_local: u64,
    /// Answers made again to check them.
    pub n_check: u64,
    /// Canaries.
    pub n_canary: u64,
    /// Answers whose norm was far from all before.
    pub n_odd: u64,
    /// Answers that differed.
    pub n_dispute: u64,
    /// Workers found to lie.
    pub n_quarantined: u64,
    /// Tasks that workers refused.
    pub n_refused: u64,
    /// Frames that the protocol does not allow.
    pub n_strike: u64,
    /// Times that a worker became suspect.
    pub n_suspect: u64,
}

/// A worker, as the hub sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerStatus {
    /// The worker.
    pub worker: WorkerId,
    /// Its machine.
    pub host: HostId,
    /// Class of its products.
    pub class: Class,
    /// In service; otherwise it gets canaries alone.
    pub is_up: bool,
    /// It wants to leave.
    pub is_draining: bool,
    /// Units that it holds.
    pub n_unit: usize,
    /// Units that it should hold; `None` before the first placement with it.
    pub n_assigned: Option<usize>,
    /// Mean round trip without the work.
    pub rtt: Duration,
    /// Mean time of an expert and a column.
    pub per_pair: Duration,
    /// Tasks in flight.
    pub n_task: usize,
}

/// A unit and its workers in service.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct UnitStatus {
    /// The unit.
    pub unit: Unit,
    /// Workers in service that hold it.
    pub n_up: usize,
    /// Workers that it is placed on: none if nobody has room.
    pub n_placed: usize,
}

/// State of a swarm.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Epoch of the placement.
    pub epoch: u32,
    /// Workers.
    pub workers: Vec<WorkerStatus>,
    /// Units.
    pub units: Vec<UnitStatus>,
    /// Counters.
    pub stats: Stats,
    /// Times of calls, in steps of one column and of several.
    pub times: [Times; 2],
}

impl Hub {
    /// Counters since the hub began.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// State of the swarm.
    pub fn status(&self) -> Status {
        let seconds = |s: f64| Duration::from_secs_f64(s.clamp(0.0, 1e6));
        let workers = self.peers.values().map(|p| WorkerStatus {
            worker: p.joined.worker,
            host: p.joined.host,
            class: p.joined.class,
            is_up: p.health.is_up(),
            is_draining: p.draining,
            n_unit: p.holds.len(),
            n_assigned: p.told.as_ref().map(Vec::len),
            rtt: seconds(p.rtt.value()),
            per_pair: seconds(p.per_pair.value()),
            n_task: p.flights.len(),
        });
        let n_up = |unit| self.holders_of(unit).filter(|p| p.health.is_up()).count();
        let units = self.config.shape.units().map(|unit| UnitStatus {
            unit,
            n_up: n_up(unit),
            n_placed: self.placement.holders(unit).len(),
        });
        Status {
            epoch: self.placement.epoch,
            workers: workers.collect(),
            units: units.collect(),
            stats: self.stats,
            times: self.times,
        }
    }

    /// Workers in service that hold a unit.
    pub fn holders(&self, unit: Unit) -> Vec<WorkerId> {
        self.holders_of(unit).filter(|p| p.health.is_up()).map(|p| p.joined.worker).collect()
    }

    /// Numbers of entries in the hub's tables: calls in progress, parts that wait, tasks in flight, timers. All are
    /// bounded by [`super::Bounds`].
    pub fn sizes(&self) -> [usize; 4] {
        [self.calls.len(), self.waiting.len(), self.flights.len(), self.timers.len()]
    }
}
