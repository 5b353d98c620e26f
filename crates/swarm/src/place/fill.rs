//! A placement while it is made.

use std::collections::BTreeMap;

use super::{Assignment, BOUND, HOT, Place, UnitLoad, capacities, score};
use crate::unit::{HostId, Unit, WorkerId};

/// A placement while it is made: workers and units by index.
pub(super) struct Filling<'a> {
    units: &'a [UnitLoad],
    workers: &'a [Place],
    replicas: usize,
    /// Holders of each unit.
    holders: Vec<Vec<usize>>,
    /// Scores `[unit][worker]`.
    scores: Vec<Vec<f64>>,
    /// Workers that `before` does not know.
    joined: Vec<bool>,
    /// Units held by each worker, and their bytes.
    load: Vec<usize>,
    bytes: Vec<u64>,
    /// Experts of each layer held by each worker.
    experts: Vec<BTreeMap<u16, u32>>,
    /// The most units that a worker gets.
    bound: Vec<usize>,
    /// The most units that it keeps: more by the rounding, so that a bound that shrinks by a little moves nothing.
    most: Vec<usize>,
}

impl<'a> Filling<'a> {
    pub(super) fn new(
        word: impl Fn(Unit) -> u64,
        units: &'a [UnitLoad],
        workers: &'a [Place],
        replicas: usize,
        before: &Assignment,
        seed: u64,
    ) -> Self {
        let capacity = capacities(workers);
        let scores = (units.iter())
            .map(|u| {
                (workers.iter().zip(&capacity))
                    .map(|(w, &c)| score(word(u.unit), w.worker, c, seed))
                    .collect()
            })
            .collect();
        let index: BTreeMap<WorkerId, usize> =
            workers.iter().enumerate().map(|(i, w)| (w.worker, i)).collect();
        let (bound, most) = bounds(units, workers, &capacity, replicas);
        let joined = workers.iter().map(|w| !before.workers.contains(&w.worker)).collect();
        let mut filling = Self {
            units,
            workers,
            replicas,
            holders: vec![Vec::new(); units.len()],
            scores,
            joined,
            load: vec![0; workers.len()],
            bytes: vec![0; workers.len()],
            experts: vec![BTreeMap::new(); workers.len()],
            bound,
            most,
        };
        for (u, unit) in units.iter().enumerate() {
            for w in before.holders(unit.unit).iter().filter_map(|id| index.get(id)) {
                // Copies of hot units are chosen anew.
                if filling.holders[u].len() < replicas && filling.is_apart(u, *w) && filling.has_memory(u, *w)
                {
                    filling.add(u, *w);
                }
            }
        }
        filling
    }

    /// Gives workers that joined units of workers that now hold too much, then those for which they have a better score
    /// than a holder.
    pub(super) fn join(&mut self) {
        let mut gains: Vec<(usize, usize)> = (0..self.units.len())
            .flat_map(|u| (0..self.workers.len()).map(move |w| (u, w)))
            .filter(|&(_, w)| self.joined[w])
            .collect();
        // The units that a worker is best for come first, since its bound may end the others.
        gains.sort_by(|a, b| self.scores[b.0][b.1].total_cmp(&self.scores[a.0][a.1]));
        for is_heavy in [true, false] {
            for &(u, w) in &gains {
                let giver = self.giver(u, w, is_heavy);
                if let Some(h) = giver.filter(|&h| self.has_room(u, w) && self.is_apart_but(u, w, Some(h))) {
                    self.remove(u, h);
                    self.add(u, w);
                }
            }
        }
    }

    /// The holder that gives its unit to a worker that joined: one that holds too much, or the one of the lowest score
    /// if the joined worker has a higher one.
    fn giver(&self, u: usize, w: usize, is_heavy: bool) -> Option<usize> {
        let score = |h: usize| self.scores[u][h];
        let old = self.holders[u].iter().copied().filter(|&h| !self.joined[h]);
        match is_heavy {
            true => {
                old.filter(|&h| self.load[h] > self.most[h]).min_by(|&a, &b| score(a).total_cmp(&score(b)))
            }
            false if self.holders[u].len() < self.replicas => None,
            false => old.min_by(|&a, &b| score(a).total_cmp(&score(b))).filter(|&h| score(w) > score(h)),
        }
    }

    /// Takes the units of the lowest scores from workers that hold too much.
    pub(super) fn shed(&mut self) {
        for w in 0..self.workers.len() {
            while self.load[w] > self.most[w] {
                let least = (0..self.units.len())
                    .filter(|&u| self.holders[u].contains(&w))
                    .min_by(|&a, &b| self.scores[a][w].total_cmp(&self.scores[b][w]));
                match least {
                    Some(u) => self.remove(u, w),
                    None => break,
                }
            }
        }
    }

    /// Fills every unit up to `n` holders, the most used units first.
    pub(super) fn fill(&mut self, n: usize) {
        let mut order: Vec<usize> = (0..self.units.len()).filter(|&u| self.holders[u].len() < n).collect();
        order.sort_by(|&a, &b| self.units[b].count.total_cmp(&self.units[a].count));
        for u in order {
            let best = self.best(u, |f, w| f.has_room(u, w) && f.is_apart(u, w));
            match best {
                Some(w) => self.add(u, w),
                None => self.make_room(u),
            }
        }
    }

    /// Gives hot units one holder more where memory is left.
    pub(super) fn heat(&mut self) {
        let mean = self.units.iter().map(|u| u.count).sum::<f64>() / self.units.len().max(1) as f64;
        let mut hot: Vec<usize> = (0..self.units.len())
            .filter(|&u| self.units[u].count > HOT * mean && self.holders[u].len() == self.replicas)
            .collect();
        hot.sort_by(|&a, &b| self.units[b].count.total_cmp(&self.units[a].count));
        for u in hot {
            if let Some(w) = self.best(u, |f, w| f.has_memory(u, w) && f.is_apart(u, w)) {
                self.add(u, w);
            }
        }
    }

    /// The holders of each unit, the best first.
    pub(super) fn finish(mut self) -> BTreeMap<Unit, Vec<WorkerId>> {
        for (holders, scores) in self.holders.iter_mut().zip(&self.scores) {
            holders.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        }
        let named = |holders: &Vec<usize>| holders.iter().map(|&w| self.workers[w].worker).collect();
        self.units.iter().zip(&self.holders).map(|(u, holders)| (u.unit, named(holders))).collect()
    }

    /// Places a unit for which no worker has room: another unit moves from a worker that can take this one to a worker
    /// with room. If no such unit exists, the bound gives way, memory never.
    fn make_room(&mut self, u: usize) {
        if self.exchange(u, Self::has_room) {
            return;
        }
        match self.best(u, |f, w| f.has_memory(u, w) && f.is_apart(u, w)) {
            Some(w) => self.add(u, w),
            None => drop(self.exchange(u, Self::has_memory)),
        }
    }

    /// Moves another unit from a worker to one that `takes` it, and puts this one in its place; false if no unit can
    /// be moved.
    fn exchange(&mut self, u: usize, takes: fn(&Self, usize, usize) -> bool) -> bool {
        for z in (0..self.workers.len()).filter(|&z| self.is_apart(u, z)) {
            for w in (0..self.workers.len()).filter(|&w| w != z) {
                let is_movable = |f: &Self, v: usize| {
                    v != u
                        && f.holders[v].contains(&z)
                        && f.has_memory_but(u, z, Some(v))
                        && takes(f, v, w)
                        && f.is_apart_but(v, w, Some(z))
                };
                if let Some(v) = (0..self.units.len()).find(|&v| is_movable(self, v)) {
                    self.remove(v, z);
                    self.add(v, w);
                    self.add(u, z);
                    return true;
                }
            }
        }
        false
    }

    /// The worker of the best score for a unit among those that suit.
    fn best(&self, u: usize, suits: impl Fn(&Self, usize) -> bool) -> Option<usize> {
        let suitable = (0..self.workers.len()).filter(|&w| suits(self, w));
        suitable.max_by(|&a, &b| self.scores[u][a].total_cmp(&self.scores[u][b]))
    }

    fn add(&mut self, u: usize, w: usize) {
        self.holders[u].push(w);
        self.load[w] += 1;
        self.bytes[w] += self.units[u].bytes;
        *self.experts[w].entry(self.units[u].unit.layer).or_default() += self.units[u].n_expert;
    }

    fn remove(&mut self, u: usize, w: usize) {
        self.holders[u].retain(|&h| h != w);
        self.load[w] -= 1;
        self.bytes[w] -= self.units[u].bytes;
        *self.experts[w].entry(self.units[u].unit.layer).or_default() -= self.units[u].n_expert;
    }

    fn has_room(&self, u: usize, w: usize) -> bool {
        self.load[w] < self.bound[w] && self.has_memory(u, w)
    }

    fn has_memory(&self, u: usize, w: usize) -> bool {
        self.has_memory_but(u, w, None)
    }

    /// True if a worker has memory for a unit once it does not hold one of its own: bytes, and slots of the layer.
    fn has_memory_but(&self, u: usize, w: usize, but: Option<usize>) -> bool {
        let (unit, gone) = (&self.units[u], but.map(|v| &self.units[v]));
        let bytes = self.bytes[w] - gone.map_or(0, |g| g.bytes);
        let layer = unit.unit.layer;
        let of_layer = self.experts[w].get(&layer).copied().unwrap_or(0);
        let n_expert = of_layer - gone.filter(|g| g.unit.layer == layer).map_or(0, |g| g.n_expert);
        let has_slots = self.workers[w].slots.is_none_or(|most| n_expert + unit.n_expert <= most);
        has_slots && bytes.saturating_add(unit.bytes) <= self.workers[w].memory
    }

    /// True if no holder of the unit is on the worker's host.
    fn is_apart(&self, u: usize, w: usize) -> bool {
        self.is_apart_but(u, w, None)
    }

    /// The same without one of the holders.
    fn is_apart_but(&self, u: usize, w: usize, but: Option<usize>) -> bool {
        let host: HostId = self.workers[w].host;
        self.holders[u].iter().all(|&h| Some(h) == but || (h != w && self.workers[h].host != host))
    }
}

/// The most units that each worker gets, and that it keeps: 1.1 of its share, rounded down and up; the former is never
/// below the share itself. Where hosts are too few for all replicas, shares are those of the replicas that fit.
fn bounds(
    units: &[UnitLoad],
    workers: &[Place],
    capacity: &[f64],
    replicas: usize,
) -> (Vec<usize>, Vec<usize>) {
    let mut hosts: Vec<HostId> = workers.iter().map(|w| w.host).collect();
    hosts.sort();
    hosts.dedup();
    let n = units.len() * replicas.min(hosts.len());
    let shares = capacity.iter().map(|c| c * n as f64);
    shares
        .map(|share| (((BOUND * share) as usize).max(share.ceil() as usize), (BOUND * share).ceil() as usize))
        .unzip()
}
