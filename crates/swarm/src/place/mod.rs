//! Placement of units on workers: weighted rendezvous hashing with bounded load.
//!
//! Every worker has a score for every unit, `-capacity / ln(hash(unit, worker))`, so that the best scores of a unit
//! fall on workers in proportion to their capacity (Thaler and Ravishankar 1998, with weights as Schindelhauer and
//! Schomaker 2005). A unit goes to its best workers on distinct hosts whose load stays within a bound of their share
//! (Mirrokni, Thorup, Zadimoghaddam 2016). A placement follows from the one before it: units whose workers stay where
//! they are move to nobody but a worker that joins with a better score, or away from one that holds too much.

mod fill;

use std::collections::BTreeMap;

use crate::random::{hash, to_unit};
use crate::unit::{HostId, Unit, WorkerId};
use fill::Filling;

/// Greatest load of a worker over its share, where whole units allow it.
pub const BOUND: f64 = 1.1;
/// A unit used more often than this times the mean is hot.
const HOT: f64 = 2.0;

/// A unit to place.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct UnitLoad {
    /// The unit.
    pub unit: Unit,
    /// Bytes of its matrices.
    pub bytes: u64,
    /// Experts.
    pub n_expert: u32,
    /// Number of rows asked of it lately, in any scale.
    pub count: f64,
}

/// A worker that can hold units.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Place {
    /// The worker.
    pub worker: WorkerId,
    /// Its machine.
    pub host: HostId,
    /// Bytes for units.
    pub memory: u64,
    /// Most experts of one layer; `None` if bytes alone count.
    pub slots: Option<u32>,
    /// Rows per second, measured or assumed.
    pub speed: f64,
}

/// Workers of each unit, the best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    /// Number of the placement; grows with every change.
    pub epoch: u32,
    /// Workers of each unit. A unit without room anywhere has none.
    pub holders: BTreeMap<Unit, Vec<WorkerId>>,
    /// Workers that took part, with or without units.
    pub workers: Vec<WorkerId>,
}

impl Assignment {
    /// Workers of a unit.
    pub fn holders(&self, unit: Unit) -> &[WorkerId] {
        self.holders.get(&unit).map_or(&[], Vec::as_slice)
    }

    /// Units of a worker: those whose best worker it is first, as they should load.
    pub fn units(&self, worker: WorkerId) -> Vec<Unit> {
        let mut ranked: Vec<(usize, Unit)> = (self.holders.iter())
            .filter_map(|(&unit, holders)| Some((holders.iter().position(|&w| w == worker)?, unit)))
            .collect();
        ranked.sort();
        ranked.into_iter().map(|(_, unit)| unit).collect()
    }

    /// Number of copies that a change from `before` loads.
    pub fn moves_from(&self, before: &Assignment) -> usize {
        let is_new = |unit: &Unit, w: &WorkerId| !before.holders(*unit).contains(w);
        self.holders.iter().map(|(unit, holders)| holders.iter().filter(|w| is_new(unit, w)).count()).sum()
    }
}

/// Places units on workers, with `replicas` of each on distinct hosts as far as there are hosts and memory, and one
/// more of hot units where memory is left.
///
/// `before` is the placement to go on from, [`Assignment::default`] for none. The epoch grows if anything changes.
/// Equal arguments give equal placements.
pub fn place(
    units: &[UnitLoad],
    workers: &[Place],
    replicas: usize,
    before: &Assignment,
    seed: u64,
) -> Assignment {
    let word = |unit: Unit| u64::from(unit.layer) << 16 | u64::from(unit.block);
    place_by(word, units, workers, replicas, before, seed)
}

/// The same with all units of a layer on as few workers as have room: each worker has one score for the whole layer.
pub fn place_by_layer(
    units: &[UnitLoad],
    workers: &[Place],
    replicas: usize,
    before: &Assignment,
    seed: u64,
) -> Assignment {
    place_by(|unit| unit.layer.into(), units, workers, replicas, before, seed)
}

fn place_by(
    word: impl Fn(Unit) -> u64,
    units: &[UnitLoad],
    workers: &[Place],
    replicas: usize,
    before: &Assignment,
    seed: u64,
) -> Assignment {
    let mut filling = Filling::new(word, units, workers, replicas, before, seed);
    filling.join();
    filling.shed();
    for rank in 0..replicas {
        filling.fill(rank + 1);
    }
    filling.heat();
    let holders = filling.finish();
    let mut ids: Vec<WorkerId> = workers.iter().map(|w| w.worker).collect();
    ids.sort();
    ids.dedup();
    let is_same = holders == before.holders && ids == before.workers;
    Assignment { epoch: before.epoch.wrapping_add(u32::from(!is_same)), holders, workers: ids }
}

/// The score of a worker for the units of a word; the highest wins.
fn score(word: u64, worker: WorkerId, capacity: f64, seed: u64) -> f64 {
    // Zero would have no logarithm.
    let chance = to_unit(hash(&[seed, word, worker.0])).max(f64::MIN_POSITIVE);
    -capacity / chance.ln()
}

/// The capacities of workers as parts of 1: the lesser of their parts of all memory and of all speed.
fn capacities(workers: &[Place]) -> Vec<f64> {
    let memory: f64 = workers.iter().map(|w| w.memory as f64).sum();
    let speed: f64 = workers.iter().map(|w| w.speed.max(0.0)).sum();
    let part = |value: f64, sum: f64| if sum > 0.0 { value / sum } else { 0.0 };
    let least: Vec<f64> =
        workers.iter().map(|w| part(w.memory as f64, memory).min(part(w.speed.max(0.0), speed))).collect();
    let sum: f64 = least.iter().sum();
    least.iter().map(|&c| part(c, sum)).collect()
}
