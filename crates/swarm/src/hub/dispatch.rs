//! Makers of the parts of calls: the worker of the least predicted answer, a second one by a hedge, or the hub.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chaski_wire::{Body, Frame};

use super::flight::{By, CallData, Flight, FlightPart, Purpose, Terms, frame, pairs_of};
use super::peer::Peer;
use super::{Action, Hub, Timer};
use crate::hedge::{Hedging, Tail};
use crate::unit::{CallId, HostId, PeerId, Unit};

/// One primary in so many goes to another replica, to keep its estimates fresh.
const EXPLORE: u64 = 64;
/// Answer over prediction that is late, and that is overdue, until there are enough samples.
const LATE: f64 = 4.0;
const LATEST: f64 = 8.0;
const SAMPLES: f64 = 64.0;
/// A worker is suspect after so many times the 99th percentile, and not before [`LEAST_OVERDUE`].
const OVERDUE: f64 = 10.0;
const LEAST_OVERDUE: Duration = Duration::from_millis(250);
/// Nothing is late before that.
const LEAST_LATE: Duration = Duration::from_micros(200);
/// Hedges at once go to workers below this load.
const IDLE: f64 = 0.2;
/// Cancelled tasks of a worker that are remembered to compare late answers.
const SETTLED: usize = 16;
/// A step that fails is tried again within this time.
const AGAIN: Duration = Duration::from_secs(1);
/// Most bytes of rows in one task, both ways.
const TASK_BYTES: u64 = 4 << 20;

/// Choice of a maker for a part.
enum Choice {
    Peer(PeerId),
    Hub,
    /// All workers that could have enough to do.
    Wait,
    Nobody,
}

/// A task to send: who makes it, and the parts.
pub(super) type Plan = BTreeMap<PeerId, Vec<u16>>;

/// Amount of work.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Load {
    pub(super) n_pair: usize,
    /// Rows of the answers.
    pub(super) n_row: usize,
    pub(super) n_part: usize,
}

impl std::ops::Add for Load {
    type Output = Load;

    fn add(self, other: Load) -> Load {
        Load {
            n_pair: self.n_pair + other.n_pair,
            n_row: self.n_row + other.n_row,
            n_part: self.n_part + other.n_part,
        }
    }
}

impl Hub {
    /// Gives all waiting parts to somebody, as far as possible.
    pub(super) fn dispatch(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let calls: BTreeSet<CallId> = self.waiting.iter().map(|(call, _)| *call).collect();
        for id in calls {
            let parts: Vec<u16> = self.waiting.range((id, 0)..=(id, u16::MAX)).map(|(_, p)| *p).collect();
            self.dispatch_call(now, id, &parts, actions);
        }
    }

    /// Gives the waiting parts of a call to somebody: one task a worker.
    fn dispatch_call(&mut self, now: Duration, id: CallId, parts: &[u16], actions: &mut Vec<Action>) {
        let (mut plan, mut here) = (Plan::new(), Vec::new());
        let mut parts: VecDeque<u16> = parts.iter().copied().collect();
        while let Some(part) = parts.pop_front() {
            while self.calls[&id].parts[usize::from(part)].n_missing() > planned(&plan, &here, part) {
                match self.choose(now, id, part, &plan, &here) {
                    Choice::Hub | Choice::Nobody if self.can_split(id, part, &plan) => {
                        here.retain(|p| *p != part);
                        plan.values_mut().for_each(|parts| parts.retain(|p| *p != part));
                        plan.retain(|_, parts| !parts.is_empty());
                        parts.extend(self.split(now, id, part));
                    }
                    Choice::Peer(peer) => plan.entry(peer).or_default().push(part),
                    Choice::Hub => here.push(part),
                    Choice::Wait => {
                        self.set_orphaned(id, part, None);
                        break;
                    }
                    Choice::Nobody => {
                        self.set_orphaned(id, part, Some(now));
                        self.use_unconfirmed(now, id, part);
                        break;
                    }
                }
            }
            if self.calls[&id].parts[usize::from(part)].n_missing() <= planned(&plan, &here, part) {
                self.set_orphaned(id, part, None);
                self.waiting.remove(&(id, part));
            }
        }
        let at_once = self.hedges_at_once(now, id, &plan);
        self.stats.n_hedge_at_once += at_once.len() as u64;
        for (peer, parts) in plan.into_iter().chain(at_once) {
            self.bucket.refill();
            self.send_parts(now, peer, id, &parts, false, actions);
        }
        if !here.is_empty() {
            self.compute(now, id, &here, actions);
        }
        if self.calls[&id].n_open == 0 {
            self.complete(now, id, actions);
        }
    }

    /// Notes that nobody can make a part, or that somebody can. The time counts from the first call that wanted the
    /// unit: an engine that tries a step again does not wait once more.
    pub(super) fn set_orphaned(&mut self, id: CallId, part: u16, now: Option<Duration>) {
        let open = self.calls.get_mut(&id).expect("the call is in progress");
        let part = &mut open.parts[usize::from(part)];
        part.orphaned = now.map(|now| {
            let since = match self.orphans.get(&part.unit) {
                Some(&(since, last)) if now.saturating_sub(last) <= AGAIN => since,
                // Somebody may have held it in between.
                _ => part.orphaned.unwrap_or(now),
            };
            self.orphans.insert(part.unit, (since, now));
            since
        });
        match part.orphaned {
            Some(since) => self.timers.set_by(Timer::Orphan(id), since + self.config.bounds.orphan),
            None => drop(self.orphans.remove(&part.unit)),
        }
    }

    /// The maker of a part. Workers that leave or are hidden come after all others, and then the hub.
    fn choose(&mut self, now: Duration, id: CallId, part: u16, plan: &Plan, here: &[u16]) -> Choice {
        let open = &self.calls[&id];
        let wanted = &open.parts[usize::from(part)];
        let hosts = self.hosts_of(id, part, plan);
        let more = self.load_of(id, &[part]);
        let mut best: Vec<(bool, f64, PeerId)> = Vec::new();
        let mut is_any = false;
        for peer in self.holders_of_all(wanted.unit, &wanted.others).filter(|p| p.health.is_up()) {
            let is_apart = !hosts.contains(&peer.joined.host) && !wanted.avoid.contains(&peer.id);
            if !is_apart {
                // One that refused a part is asked again soon; one that makes it already does not count.
                is_any |= wanted.avoid.contains(&peer.id);
                continue;
            }
            is_any = true;
            let with = plan.get(&peer.id).map_or(Load::default(), |parts| self.load_of(id, parts));
            if self.has_room(peer, with, more) {
                let predicted = self.predicted(now, peer, with + more);
                best.push((!peer.is_placed(), predicted, peer.id));
            }
        }
        best.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let n_first = best.iter().filter(|b| b.0 == best[0].0).count() as u64;
        // Hedges at once keep all replicas fresh.
        if n_first > 1 && self.random.below(EXPLORE) == 0 {
            let other = 1 + self.random.below(n_first - 1);
            return Choice::Peer(best[other as usize].2);
        }
        let is_hub_free =
            self.config.local.is_some() && !here.contains(&part) && !self.is_made_here(id, part);
        match best.first() {
            Some((_, _, peer)) => Choice::Peer(*peer),
            None if is_any => Choice::Wait,
            None if is_hub_free => Choice::Hub,
            None => Choice::Nobody,
        }
    }

    /// Hosts that make a part, have made it, or will.
    pub(super) fn hosts_of(&self, id: CallId, part: u16, plan: &Plan) -> BTreeSet<HostId> {
        let wanted = &self.calls[&id].parts[usize::from(part)];
        let flying = wanted.flights.iter().filter_map(|task| self.flights[task].by.host());
        let answered = wanted.answers.iter().filter_map(|(by, _)| by.host());
        let planned =
            plan.iter().filter(|(_, parts)| parts.contains(&part)).map(|(p, _)| self.peers[p].joined.host);
        flying.chain(answered).chain(planned).collect()
    }

    fn is_made_here(&self, id: CallId, part: u16) -> bool {
        let wanted = &self.calls[&id].parts[usize::from(part)];
        let is_flying = wanted.flights.iter().any(|task| self.flights[task].by == By::Hub);
        is_flying || wanted.answers.iter().any(|(by, _)| *by == By::Hub)
    }

    /// True if a worker that is about to get some work can take more: in tasks and bytes, of which one task may have
    /// any number.
    pub(super) fn has_room(&self, peer: &Peer, with: Load, more: Load) -> bool {
        let bounds = &self.config.bounds;
        let n_byte = self.bytes_of((with + more).n_row);
        let n_task = match self.sums() {
            true => (with + more).n_part as u64,
            // Tasks are at least half full where parts are large.
            false => (2 * n_byte).div_ceil(TASK_BYTES).max(1),
        };
        let is_alone = peer.flights.is_empty() && with.n_part == 0;
        let is_below = peer.n_byte + n_byte <= bounds.n_byte;
        peer.flights.len() as u64 + n_task <= bounds.n_task as u64 && (is_alone || is_below)
    }

    /// Bytes of rows, both ways, of an answer of so many rows, at most.
    pub(super) fn bytes_of(&self, n_row: usize) -> u64 {
        let width = self.config.shape.width;
        n_row as u64 * (self.config.input.row_bytes(width) + self.config.output.row_bytes(width))
    }

    /// The work of some parts of a call.
    fn load_of(&self, id: CallId, parts: &[u16]) -> Load {
        let parts = parts.iter().map(|&p| &self.calls[&id].parts[usize::from(p)]);
        parts.fold(Load::default(), |sum, p| sum + Load { n_pair: p.pairs.len(), n_row: p.n_row, n_part: 1 })
    }

    /// Predicted seconds until a worker has done some work more.
    fn predicted(&self, now: Duration, peer: &Peer, load: Load) -> f64 {
        peer.predicted(now, load.n_pair, self.bytes_of(load.n_row))
    }

    /// Second tasks that are sent with the first ones, if the policy is to: to replicas on other hosts.
    fn hedges_at_once(&self, now: Duration, id: CallId, plan: &Plan) -> Plan {
        let is_always = self.config.hedging == Hedging::Always;
        let is_light = self.config.hedging == Hedging::Auto && self.tail.tail() == Tail::Light;
        let mut second = Plan::new();
        if !is_always && !is_light {
            return second;
        }
        // A part that wants two answers is planned twice.
        let parts: BTreeSet<u16> = plan.values().flatten().copied().collect();
        for part in parts {
            let more = self.load_of(id, &[part]);
            let suits = |p: &&Peer| {
                let is_free =
                    is_always || (p.is_idle(now) && p.load(now) < IDLE && !plan.contains_key(&p.id));
                // A first task to the same worker is one more.
                let n_task = p.flights.len() + usize::from(plan.contains_key(&p.id));
                let planned = [plan, &second].into_iter().filter_map(|plan| plan.get(&p.id));
                let with = planned.fold(Load::default(), |with, parts| with + self.load_of(id, parts));
                is_free && p.is_placed() && n_task < self.config.bounds.n_task && self.has_room(p, with, more)
            };
            if let Some(peer) = self.next_replica(now, id, part, plan, suits) {
                second.entry(peer).or_default().push(part);
            }
        }
        // A worker that gets a first task, too, gets the second one in a frame of its own.
        second
    }

    /// The replica of the least predicted answer on a host that does not make a part yet.
    fn next_replica(
        &self,
        now: Duration,
        id: CallId,
        part: u16,
        plan: &Plan,
        suits: impl Fn(&&Peer) -> bool,
    ) -> Option<PeerId> {
        let wanted = &self.calls[&id].parts[usize::from(part)];
        let hosts = self.hosts_of(id, part, plan);
        let load = self.load_of(id, &[part]);
        let is_free =
            |p: &&Peer| p.health.is_up() && !hosts.contains(&p.joined.host) && !wanted.avoid.contains(&p.id);
        let predicted = |p: &Peer| self.predicted(now, p, load);
        let free = self.holders_of_all(wanted.unit, &wanted.others).filter(is_free).filter(suits);
        free.min_by(|a, b| predicted(a).total_cmp(&predicted(b))).map(|p| p.id)
    }

    /// Sends parts of a call to a worker, in as many tasks as their bytes need.
    fn send_parts(
        &mut self,
        now: Duration,
        peer: PeerId,
        id: CallId,
        parts: &[u16],
        late: bool,
        actions: &mut Vec<Action>,
    ) {
        let mut parts = parts.to_vec();
        parts.sort_unstable();
        let mut rest = parts.as_slice();
        while !rest.is_empty() {
            let mut n = 1;
            let is_summed = self.calls[&id].data.weights.is_some();
            while n < rest.len()
                && !is_summed
                && self.bytes_of(self.load_of(id, &rest[..=n]).n_row) <= TASK_BYTES
            {
                n += 1;
            }
            let (now_sent, later) = rest.split_at(n);
            rest = later;
            let open = &self.calls[&id];
            let data = open.data.clone();
            let ranges = now_sent.iter().map(|&p| (p, open.parts[usize::from(p)].pairs.clone())).collect();
            let task = self.send(now, peer, id, data, ranges, Purpose::Serve { late }, actions);
            let open = self.calls.get_mut(&id).expect("the call is in progress");
            now_sent.iter().for_each(|&p| open.parts[usize::from(p)].flights.push(task));
        }
    }

    /// Sends a task, and sets its timers.
    pub(super) fn send(
        &mut self,
        now: Duration,
        peer: PeerId,
        call: CallId,
        data: Arc<CallData>,
        ranges: Vec<(u16, std::ops::Range<usize>)>,
        purpose: Purpose,
        actions: &mut Vec<Action>,
    ) -> u64 {
        let task = self.name_task();
        let n_pair = ranges.iter().map(|(_, range)| range.len()).sum();
        let n_byte = self.bytes_of(data.n_row(ranges.iter().map(|(_, range)| range.clone())));
        let at = self.peers.get_mut(&peer).expect("tasks go to workers that are connected");
        let predicted = at.predicted(now, n_pair, n_byte);
        at.flights.insert(task);
        at.n_pair += n_pair;
        at.n_byte += n_byte;
        let by = By::Worker { peer, worker: at.joined.worker, host: at.joined.host };
        let overdue = self.overdue_after(predicted);
        let is_service = matches!(purpose, Purpose::Serve { .. });
        if is_service && self.config.hedging == Hedging::Auto {
            self.timers.set(Timer::Late(task), now + self.late_after(predicted));
        }
        self.timers.set(Timer::Overdue(task), now + overdue);
        let epoch = self.placement.epoch;
        let terms = Terms { output: self.config.output, budget: 2 * overdue };
        let frame = frame(task, epoch, &data, ranges.iter().map(|(_, range)| range.clone()), terms);
        self.fly(now, task, by, call, data, ranges, purpose, predicted);
        self.stats.n_task += 1;
        actions.push(Action::Send { peer, frame });
        task
    }

    /// Computes parts of a call at the hub.
    fn compute(&mut self, now: Duration, id: CallId, parts: &[u16], actions: &mut Vec<Action>) {
        let open = &self.calls[&id];
        let data = open.data.clone();
        // Pairs of a task ascend, so parts of sums go one by one.
        let n = if data.weights.is_some() { 1 } else { parts.len() };
        for parts in parts.chunks(n) {
            let open = &self.calls[&id];
            let ranges = parts.iter().map(|&p| (p, open.parts[usize::from(p)].pairs.clone())).collect();
            let purpose = Purpose::Serve { late: false };
            let task = self.compute_ranges(now, id, data.clone(), ranges, purpose, actions);
            self.stats.n_local += 1;
            let open = self.calls.get_mut(&id).expect("the call is in progress");
            parts.iter().for_each(|&p| open.parts[usize::from(p)].flights.push(task));
        }
    }

    /// Computes pairs of a call at the hub.
    pub(super) fn compute_ranges(
        &mut self,
        now: Duration,
        call: CallId,
        data: Arc<CallData>,
        ranges: Vec<(u16, std::ops::Range<usize>)>,
        purpose: Purpose,
        actions: &mut Vec<Action>,
    ) -> u64 {
        let task = self.name_task();
        let pairs = pairs_of(&data, ranges.iter().map(|(_, r)| r.clone()));
        let (layer, step_columns, x) = (data.layer, data.step_columns, data.x.clone());
        let is_check = matches!(purpose, Purpose::Check(_));
        self.fly(now, task, By::Hub, call, data, ranges, purpose, 0.0);
        actions.push(Action::Compute { task, layer, step_columns, x, pairs, is_check });
        task
    }

    fn name_task(&mut self) -> u64 {
        let task = self.next_task;
        self.next_task += 1;
        task
    }

    fn fly(
        &mut self,
        now: Duration,
        task: u64,
        by: By,
        call: CallId,
        data: Arc<CallData>,
        ranges: Vec<(u16, std::ops::Range<usize>)>,
        purpose: Purpose,
        predicted: f64,
    ) {
        let n_pair = ranges.iter().map(|(_, range)| range.len()).sum();
        let n_row = data.n_row(ranges.iter().map(|(_, range)| range.clone()));
        let n_byte = self.bytes_of(n_row);
        let part = |(part, pairs): (u16, std::ops::Range<usize>)| {
            let n_row = data.n_row(std::iter::once(pairs.clone()));
            FlightPart { part, pairs, n_row, used: None }
        };
        let parts = ranges.into_iter().map(part).collect();
        let epoch = self.placement.epoch;
        let (settled, hedged) = (None, false);
        let flight = Flight {
            by,
            call,
            data,
            parts,
            purpose,
            epoch,
            sent: now,
            predicted,
            n_pair,
            n_row,
            n_byte,
            settled,
            hedged,
        };
        self.flights.insert(task, flight);
    }

    /// Time after which a hedge is due.
    fn late_after(&self, predicted: f64) -> Duration {
        let is_known = self.answers.weight() >= SAMPLES;
        let ratio = if is_known { self.answers.quantile(1.0 - self.bucket.late_part()) } else { LATE };
        Duration::from_secs_f64((ratio * predicted).clamp(0.0, 1e4)).max(LEAST_LATE)
    }

    /// Time after which a worker is suspect.
    fn overdue_after(&self, predicted: f64) -> Duration {
        let is_known = self.answers.weight() >= SAMPLES;
        let ratio = if is_known { self.answers.quantile(0.99) } else { LATEST };
        Duration::from_secs_f64((OVERDUE * ratio * predicted).clamp(0.0, 1e4)).max(LEAST_OVERDUE)
    }

    /// The answer of a task is late: its open parts go to other replicas, within the budget.
    pub(super) fn late(&mut self, now: Duration, task: u64, actions: &mut Vec<Action>) {
        let Some(flight) = self.flights.get(&task).filter(|f| f.settled.is_none()) else { return };
        let (id, predicted) = (flight.call, flight.predicted);
        let Some(open) = self.calls.get(&id) else { return };
        let part_is_open = |p: u16| {
            let part = &open.parts[usize::from(p)];
            !part.is_over() && part.flights.len() <= part.wanted - part.answers.len().min(part.wanted)
        };
        let parts: Vec<u16> = flight.parts.iter().map(|p| p.part).filter(|&p| part_is_open(p)).collect();
        let plan = self.replicas(now, id, parts.clone());
        if plan.is_empty() && !parts.is_empty() {
            // Another try comes later: a replica may have room then.
            return self.timers.set(Timer::Late(task), now + self.late_after(predicted));
        }
        self.bucket.wanted(plan.len());
        let mut n_sent = 0;
        for (peer, parts) in plan {
            if self.bucket.take() {
                n_sent += parts.len();
                self.send_parts(now, peer, id, &parts, true, actions);
                self.stats.n_hedge_late += 1;
            }
        }
        if let Some(flight) = self.flights.get_mut(&task) {
            flight.hedged |= n_sent > 0;
        }
        // Parts for which there was no token are tried again; the new tasks have timers of their own.
        if n_sent < parts.len() {
            self.timers.set(Timer::Late(task), now + self.late_after(predicted));
        }
    }

    /// Replicas for late parts, on as few workers as possible, since each costs a token.
    fn replicas(&self, now: Duration, id: CallId, mut parts: Vec<u16>) -> Plan {
        let mut plan = Plan::new();
        while !parts.is_empty() {
            let mut able = Plan::new();
            for &part in &parts {
                let more = self.load_of(id, &[part]);
                let hosts = self.hosts_of(id, part, &plan);
                let wanted = &self.calls[&id].parts[usize::from(part)];
                for peer in self.holders_of_all(wanted.unit, &wanted.others).filter(|p| p.health.is_up()) {
                    let with = able.get(&peer.id).map_or(Load::default(), |parts| self.load_of(id, parts));
                    let is_free = !hosts.contains(&peer.joined.host) && !wanted.avoid.contains(&peer.id);
                    if is_free && !plan.contains_key(&peer.id) && self.has_room(peer, with, more) {
                        able.entry(peer.id).or_default().push(part);
                    }
                }
            }
            let predicted = |peer: &PeerId, parts: &[u16]| {
                self.predicted(now, &self.peers[peer], self.load_of(id, parts)) / parts.len() as f64
            };
            let best = able.into_iter().max_by(|(a, of_a), (b, of_b)| {
                let by_time = || predicted(b, of_b).total_cmp(&predicted(a, of_a));
                of_a.len().cmp(&of_b.len()).then_with(by_time)
            });
            let Some((peer, able)) = best else { break };
            parts.retain(|part| !able.contains(part));
            plan.insert(peer, able);
        }
        plan
    }

    /// The answer of a task is not wanted any more: CANCEL, and its worker has room again.
    pub(super) fn settle(&mut self, now: Duration, task: u64) {
        let Some(flight) = self.flights.get_mut(&task).filter(|f| f.settled.is_none()) else { return };
        let Some(peer) = flight.by.peer() else {
            self.flights.remove(&task);
            return;
        };
        flight.settled = Some(now);
        let (n_pair, n_byte) = (flight.n_pair, flight.n_byte);
        self.timers.cancel(Timer::Late(task));
        let Some(at) = self.peers.get_mut(&peer) else { return };
        if at.flights.remove(&task) {
            at.n_pair -= n_pair;
            at.n_byte -= n_byte;
        }
        at.settled.insert(task);
        // A task that runs is not broken off.
        let service = Duration::from_secs_f64(at.service(n_pair).min(10.0));
        at.busy_until = at.busy_until.max(now + service);
        self.cancelled.entry(peer).or_default().push(task);
        if at.settled.len() > SETTLED {
            let oldest = at.settled.pop_first().expect("it has one");
            self.flights.remove(&oldest);
            self.timers.cancel(Timer::Overdue(oldest));
        }
    }

    /// Sends the CANCELs of this event.
    pub(super) fn send_cancelled(&mut self, actions: &mut Vec<Action>) {
        for (peer, mut ids) in std::mem::take(&mut self.cancelled) {
            ids.sort_unstable();
            if self.peers.contains_key(&peer) {
                self.stats.n_cancel += ids.len() as u64;
                actions.push(Action::Send { peer, frame: Frame::plain(Body::Cancel(ids)) });
            }
        }
    }

    /// Parts that need an answer are given to somebody at the end of the event.
    pub(super) fn reopen(&mut self, id: CallId, part: u16) {
        let wanted = self.calls.get(&id).and_then(|open| open.parts.get(usize::from(part)));
        if wanted.is_some_and(|p| p.n_missing() > 0) {
            self.waiting.insert((id, part));
        }
    }

    /// Units of which no worker in service holds a copy.
    pub(super) fn is_orphan(&self, unit: Unit) -> bool {
        !self.holders_of(unit).any(|p| p.health.is_up())
    }
}

/// How often a part is planned.
fn planned(plan: &Plan, here: &[u16], part: u16) -> usize {
    plan.values().flatten().chain(here).filter(|&&p| p == part).count()
}
