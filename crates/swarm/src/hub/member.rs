//! Workers that come, leave and change: health, and the units that each should hold.

use std::collections::BTreeSet;
use std::time::Duration;

use chaski_wire::{Body, Fail, FailCode, Frame, Have};

use super::flight::Purpose;
use super::peer::Peer;
use super::{Action, CloseReason, Hub, Joined, Timer};
use crate::health::{PONG_LATE, SILENT};
use crate::place::{Place, UnitLoad, place, place_by_layer};
use crate::unit::{Class, PeerId, Unit};

/// Workers that join together make one placement.
const TOGETHER: Duration = Duration::from_millis(50);
/// Time between PINGs.
const PING: Duration = Duration::from_millis(500);
/// Time between comparisons of speeds with those of the placement, and the difference that makes a new one.
const DRIFT_TIME: Duration = Duration::from_secs(10);
const DRIFT: f64 = 0.2;
/// An ASSIGN is sent again after so long without a HAVE: either frame may have been damaged.
const NO_PROGRESS: Duration = Duration::from_secs(30);
/// Answers before a worker's speed is believed.
const BELIEVED: u32 = 64;

impl Hub {
    /// A worker is welcome, unless there are too many, or it was found to lie.
    pub(super) fn join(&mut self, now: Duration, id: PeerId, joined: Joined, actions: &mut Vec<Action>) {
        if self.peers.contains_key(&id) {
            return;
        }
        if self.quarantined.contains(&joined.worker) {
            return actions.push(Action::Close { peer: id, reason: CloseReason::Quarantined });
        }
        let before = self.peers.values().find(|p| p.joined.worker == joined.worker).map(|p| p.id);
        if let Some(before) = before {
            self.expel(now, before, CloseReason::Replaced, actions);
        }
        if self.peers.len() >= self.config.bounds.n_peer {
            return actions.push(Action::Close { peer: id, reason: CloseReason::Full });
        }
        self.peers.insert(id, Peer::new(id, joined, now));
        self.ping(now, id, actions);
        self.timers.set(Timer::Ping(id), now + PING);
        self.timers.set_by(Timer::Drift, now + DRIFT_TIME);
        self.rebalance_soon(now);
    }

    /// A connection is gone: its tasks go to others in the same turn.
    pub(super) fn leave(&mut self, now: Duration, id: PeerId, actions: &mut Vec<Action>) {
        let Some(peer) = self.peers.remove(&id) else { return };
        for unit in &peer.holds {
            self.forget_holder(id, *unit);
        }
        self.timers.cancel(Timer::Ping(id));
        self.timers.cancel(Timer::Canary(id));
        self.cancelled.remove(&id);
        for task in peer.flights.into_iter().chain(peer.settled) {
            self.timers.cancel(Timer::Late(task));
            self.timers.cancel(Timer::Overdue(task));
            let Some(flight) = self.flights.remove(&task) else { continue };
            if let Some(open) = self.calls.get_mut(&flight.call) {
                open.parts.iter_mut().for_each(|p| p.flights.retain(|&t| t != task));
            }
            if flight.settled.is_some() {
                continue;
            }
            match flight.purpose {
                Purpose::Serve { .. } => self.reassign(&flight, false),
                Purpose::Check(case) => self.recheck(now, case, actions),
                Purpose::Canary(_) => {}
            }
        }
        self.release_class(now);
        self.rebalance_soon(now);
    }

    /// Closes a connection from this side.
    pub(super) fn expel(
        &mut self,
        now: Duration,
        id: PeerId,
        reason: CloseReason,
        actions: &mut Vec<Action>,
    ) {
        if self.peers.contains_key(&id) {
            actions.push(Action::Close { peer: id, reason });
            self.leave(now, id, actions);
        }
    }

    /// HAVE: a unit of the model, whose digest is that of others in the class, is in service from now on.
    pub(super) fn have(&mut self, now: Duration, id: PeerId, have: &Have, actions: &mut Vec<Action>) {
        let Some(units) =
            have.units.iter().map(|unit| self.config.shape.named(unit)).collect::<Option<Vec<Unit>>>()
        else {
            return self.strike(now, id, 0, "a unit that the model does not have", actions);
        };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Joined { worker, class, .. } = peer.joined;
        for unit in units {
            // One digest stands for one unit; of several units it says nothing about each.
            let known = (have.units.len() == 1)
                .then(|| *self.canaries.entry((class, unit)).or_insert((worker, have.canary)));
            if let Some((first, digest)) = known
                && digest != have.canary
                && first != worker
            {
                self.stats.n_dispute += 1;
                let fail = Fail::new(FailCode::WEIGHTS, 0, "another digest than a worker of the same class");
                actions.push(Action::Send { peer: id, frame: Frame::plain(Body::Fail(fail)) });
                let liar = self.disagreements.add(first, worker);
                let found = self.peers.values().find(|p| Some(p.joined.worker) == liar).map(|p| p.by());
                found.into_iter().for_each(|by| self.accuse(now, by, actions));
                continue;
            }
            if known.is_some_and(|(first, digest)| first == worker && digest != have.canary) {
                self.canaries.insert((class, unit), (worker, have.canary));
            }
            let Some(peer) = self.peers.get_mut(&id) else { return };
            peer.holds.insert(unit);
            peer.progress = now;
            self.holders.entry(unit).or_default().insert(id);
            self.orphans.remove(&unit);
        }
        self.rebalance_soon(now);
    }

    /// A worker holds a unit no more.
    pub(super) fn drop_holder(&mut self, id: PeerId, unit: Unit) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.holds.remove(&unit);
        }
        self.forget_holder(id, unit);
    }

    fn forget_holder(&mut self, id: PeerId, unit: Unit) {
        if let Some(ids) = self.holders.get_mut(&unit) {
            ids.remove(&id);
            if ids.is_empty() {
                self.holders.remove(&unit);
            }
        }
    }

    /// STATE.
    pub(super) fn state(&mut self, now: Duration, id: PeerId, state: chaski_wire::State) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.hidden == state.visible {
            peer.hidden = !state.visible;
            self.rebalance_soon(now);
        }
    }

    /// DRAIN: the worker's units are copied to others, and then it may go.
    pub(super) fn drain(&mut self, now: Duration, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.draining = true;
            self.rebalance_soon(now);
        }
    }

    /// PONG.
    pub(super) fn pong(&mut self, now: Duration, id: PeerId, clock: u64) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(sent) = peer.ping.filter(|sent| sent.as_micros() as u64 == clock) else { return };
        peer.ping = None;
        peer.rtt.add((now - sent).as_secs_f64());
        // A suspect without units answers PINGs in place of canaries.
        if !peer.health.is_up() && peer.flights.is_empty() && peer.health.canary_at().is_none() {
            self.canary_back(now, id, Some(true), &mut Vec::new());
        }
    }

    pub(super) fn ping(&mut self, now: Duration, id: PeerId, actions: &mut Vec<Action>) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.ping.is_none() {
            peer.ping = Some(now);
            actions.push(Action::Send { peer: id, frame: Frame::plain(Body::Ping(now.as_micros() as u64)) });
        }
    }

    /// Looks after a connection now and then: a late PONG makes a suspect, and a suspect that is silent is gone.
    pub(super) fn look_after(&mut self, now: Duration, id: PeerId, actions: &mut Vec<Action>) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let is_late = peer.ping.is_some_and(|sent| now.saturating_sub(sent) >= PONG_LATE);
        let is_new = is_late && peer.health.suspect(now);
        if is_late {
            // Its PONG may have been damaged: another PING tells.
            peer.ping = None;
        }
        if !peer.health.is_up() && now.saturating_sub(peer.heard) >= SILENT {
            return self.expel(now, id, CloseReason::Silent, actions);
        }
        if is_new {
            self.suspected(now, id, actions);
        }
        self.ping(now, id, actions);
        self.timers.set(Timer::Ping(id), now + PING);
        self.let_go(now, id, actions);
    }

    /// Closes the connection of a worker that leaves, once others hold what it holds and its tasks are done.
    fn let_go(&mut self, now: Duration, id: PeerId, actions: &mut Vec<Action>) {
        let Some(peer) = self.peers.get(&id).filter(|p| p.draining && p.flights.is_empty()) else { return };
        let is_held =
            |unit: &Unit| self.holders_of(*unit).any(|p| p.id != id && p.health.is_up() && !p.draining);
        if peer.holds.iter().all(is_held) {
            self.expel(now, id, CloseReason::Drained, actions);
        }
    }

    /// A worker became suspect: its tasks go to others, too, and it gets canaries.
    pub(super) fn suspected(&mut self, now: Duration, id: PeerId, _actions: &mut Vec<Action>) {
        self.stats.n_suspect += 1;
        let Some(peer) = self.peers.get(&id) else { return };
        let at = peer.health.canary_at().unwrap_or(now);
        let tasks: Vec<u64> = peer.flights.iter().copied().collect();
        self.timers.set(Timer::Canary(id), at);
        for task in tasks {
            let Some(flight) = self.flights.get(&task) else { continue };
            let (call, parts): (_, Vec<u16>) = (flight.call, flight.parts.iter().map(|p| p.part).collect());
            if !matches!(flight.purpose, Purpose::Serve { .. }) {
                continue;
            }
            // Its answer still counts if it comes first.
            self.timers.cancel(Timer::Late(task));
            if let Some(open) = self.calls.get_mut(&call) {
                open.parts.iter_mut().for_each(|p| p.flights.retain(|&t| t != task));
            }
            parts.into_iter().for_each(|part| self.reopen(call, part));
        }
    }

    /// A canary came back, right or wrong, or did not (`None`).
    pub(super) fn canary_back(
        &mut self,
        now: Duration,
        id: PeerId,
        good: Option<bool>,
        actions: &mut Vec<Action>,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        match good {
            Some(true) if peer.health.canary_good(now) => self.rebalance_soon(now),
            Some(true) => {}
            None => peer.health.canary_failed(now),
            Some(false) => {
                let by = peer.by();
                return self.accuse(now, by, actions);
            }
        }
        if let Some(at) = self.peers.get(&id).and_then(|p| p.health.canary_at()) {
            self.timers.set(Timer::Canary(id), at);
        }
    }

    /// Has the placement looked at again soon, together with other changes.
    pub(super) fn rebalance_soon(&mut self, now: Duration) {
        self.timers.set_by(Timer::Rebalance, now + TOGETHER);
    }

    /// Compares speeds with those of the placement, and looks for assignments that do not get on.
    pub(super) fn drift(&mut self, now: Duration) {
        let has_drifted = |p: &Peer| {
            let ratio = p.speed() / p.placed_speed;
            p.per_pair.n_sample() >= BELIEVED && !(1.0 / (1.0 + DRIFT)..=1.0 + DRIFT).contains(&ratio)
        };
        let mut is_any = false;
        for peer in self.peers.values_mut() {
            if has_drifted(peer) {
                peer.placed_speed = peer.speed();
                is_any = true;
            }
            let is_missing = peer.told.iter().flatten().any(|unit| !peer.holds.contains(unit));
            if is_missing && now.saturating_sub(peer.progress) >= NO_PROGRESS {
                peer.told = None;
                is_any = true;
            }
        }
        if is_any {
            self.rebalance_soon(now);
        }
        self.timers.set(Timer::Drift, now + DRIFT_TIME);
    }

    /// Places all units anew, and tells each worker what it should hold: what is placed there, and what it holds that
    /// is not held yet by those who should.
    pub(super) fn rebalance(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.class.is_none() && self.config.exact {
            self.choose_class();
        }
        let shape = &self.config.shape;
        let count = |unit| self.counts.get(&unit).copied().unwrap_or(0.0);
        let units: Vec<UnitLoad> = shape
            .units()
            .map(|unit| UnitLoad {
                unit,
                bytes: shape.bytes(unit),
                n_expert: shape.experts(unit).len() as u32,
                count: count(unit),
            })
            .collect();
        let placed = self.peers.values().filter(|p| p.is_placed() && self.is_of_class(p));
        let workers: Vec<Place> = placed
            .map(|p| Place {
                worker: p.joined.worker,
                host: p.joined.host,
                memory: p.joined.memory,
                slots: p.joined.is_even.then(|| shape.even_slots(p.joined.memory)),
                speed: p.placed_speed,
            })
            .collect();
        let place = if self.sums() { place_by_layer } else { place };
        self.placement = place(&units, &workers, self.config.replicas, &self.placement, self.config.seed);
        for id in self.peers.keys().copied().collect::<Vec<_>>() {
            let wished = self.wished(id);
            let peer = self.peers.get_mut(&id).expect("its id is one of the keys");
            if peer.told.as_ref() == Some(&wished) {
                continue;
            }
            let kept: BTreeSet<Unit> = wished.iter().copied().collect();
            let dropped: Vec<Unit> = peer.holds.difference(&kept).copied().collect();
            (peer.told, peer.progress) = (Some(wished.clone()), now);
            dropped.into_iter().for_each(|unit| self.drop_holder(id, unit));
            actions.push(Action::Assign { peer: id, epoch: self.placement.epoch, units: wished });
        }
    }

    /// Units that a worker should hold, the most wanted first.
    fn wished(&self, id: PeerId) -> Vec<Unit> {
        let peer = &self.peers[&id];
        let mut wished = self.placement.units(peer.joined.worker);
        // Units that nobody has come first, then those used most.
        let count = |unit: &Unit| self.counts.get(unit).copied().unwrap_or(0.0);
        wished.sort_by(|a, b| {
            let key = |u: &Unit| !self.is_orphan(*u) && !peer.holds.contains(u);
            key(a).cmp(&key(b)).then(count(b).total_cmp(&count(a)))
        });
        let is_needed = |unit: &&Unit| {
            let assigned = self.placement.holders(**unit);
            let n_held = self
                .holders_of(**unit)
                .filter(|p| p.health.is_up() && assigned.contains(&p.joined.worker))
                .count();
            n_held < assigned.len().max(1)
        };
        let old = peer.holds.iter().filter(|unit| !wished.contains(unit)).filter(is_needed).copied();
        let old: Vec<Unit> = if self.is_of_class(peer) { old.collect() } else { Vec::new() };
        wished.extend(old);
        wished
    }

    /// Chooses the class that serves, in exact mode without products of the hub: one whose memory has room for
    /// everything, and that holds most.
    pub(super) fn choose_class(&mut self) {
        let classes: BTreeSet<Class> = self.peers.values().map(|p| p.joined.class).collect();
        let shape = &self.config.shape;
        let total: u64 = shape.units().map(|unit| shape.bytes(unit)).sum();
        let rank = |class: Class| {
            let peers = self.peers.values().filter(|p| p.joined.class == class);
            let memory: u64 = peers.clone().map(|p| p.joined.memory).fold(0, u64::saturating_add);
            let held: BTreeSet<&Unit> = peers.flat_map(|p| p.holds.iter()).collect();
            (memory >= total, held.len(), memory)
        };
        self.class = classes.into_iter().max_by_key(|&class| rank(class));
    }

    /// A call failed for want of workers: another class may be able to serve, if nothing else has bits of this one.
    pub(super) fn doubt_class(&mut self, now: Duration) {
        if self.config.local.is_none() && self.calls.is_empty() {
            self.class = None;
            self.probes.clear();
            self.rebalance_soon(now);
        }
    }

    /// Another class may serve once no worker of the present one is left, and no call is in progress that has its bits.
    pub(super) fn release_class(&mut self, now: Duration) {
        if self.config.local.is_some() || self.class.is_none() || !self.calls.is_empty() {
            return;
        }
        if !self.peers.values().any(|p| Some(p.joined.class) == self.class) {
            self.class = None;
            self.probes.clear();
            self.rebalance_soon(now);
        }
    }
}

impl Peer {
    /// The worker as the maker of an answer.
    fn by(&self) -> super::flight::By {
        let super::Joined { worker, host, .. } = self.joined;
        super::flight::By::Worker { peer: self.id, worker, host }
    }
}
