//! Checks of answers: some are made again by somebody else, and of two that differ a third one decides.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::call::Open;
use super::dispatch::Load;
use super::flight::{By, CallData, Case, Flight, Purpose, pairs_of};
use super::{Action, CallPair, CloseReason, Hub};
use crate::unit::{CallId, HostId, PeerId, Unit, WorkerId};
use crate::verify::Kept;

/// Answers of different workers to one task, before nobody is asked any more.
const MOST_CLAIMS: usize = 4;
/// Checks in progress: a hub that computes slowly falls behind with them, not with memory.
const MOST_CHECKS: usize = 32;
/// The same of those that the hub computes: its CPU has calls to serve.
const MOST_HERE: usize = 4;
/// Most pairs of a part that are made again: those of a prompt would take the hub longer than the prompt itself.
const CHECKED: usize = 8;
/// Most rows of a part whose norms are looked at.
const MEASURED: usize = 8;
/// Part of the answers of a worker in doubt that are checked.
const IN_DOUBT: f64 = 0.5;
/// After `n` answers that were checked and right, one in `1 + n / 8` is checked, until that is the configured part: a
/// worker that always lies is found by its first answers, and an honest one has some 50 of them made again.
const TRUST: f64 = 8.0;

/// Pairs of a column whose product is known, or its sum.
#[derive(Debug)]
pub(super) struct Probe {
    /// The units of the pairs.
    units: Vec<Unit>,
    data: Arc<CallData>,
    kept: Kept,
}

impl Hub {
    /// True if the norms of an answer are what the past lets expect.
    pub(super) fn is_normal(&mut self, flight: &Flight, part: u16, rows: &[f32]) -> bool {
        let width = self.config.shape.width as usize;
        let Some(part) = flight.parts.iter().find(|p| p.part == part) else { return true };
        let mut is_normal = true;
        let step = part.n_row.div_ceil(MEASURED).max(1);
        let pairs = flight.data.leads(&part.pairs);
        for (pair, row) in pairs.iter().zip(rows.chunks_exact(width)).step_by(step) {
            let Some(unit) = self.config.shape.unit(flight.data.layer, pair.expert) else { continue };
            let x = &flight.data.x[usize::from(pair.column) * width..][..width];
            is_normal &= self.norms.entry(unit).or_default().admits(x, row);
        }
        self.stats.n_odd += u64::from(!is_normal);
        is_normal
    }

    /// True if somebody else can make a part, or makes it already.
    pub(super) fn has_other(&self, flight: &Flight, part: u16) -> bool {
        let Some(open) = self.calls.get(&flight.call) else { return false };
        let part = &open.parts[usize::from(part)];
        let host = flight.by.host();
        self.config.local.is_some()
            || self
                .holders_of_all(part.unit, &part.others)
                .any(|p| p.health.is_up() && Some(p.joined.host) != host)
    }

    /// Has parts of an answer made again by somebody else, each with the configured chance. The choice comes after the
    /// answer, from a seed that workers do not know.
    pub(super) fn spot_check(
        &mut self,
        now: Duration,
        flight: &Flight,
        rows: &[f32],
        actions: &mut Vec<Action>,
    ) {
        let By::Worker { worker, peer: by_peer, .. } = flight.by else { return };
        let width = self.config.shape.width as usize;
        let chance = self.check_chance(by_peer, worker);
        for (i, part) in flight.parts.iter().enumerate() {
            let range = flight.rows_of(i);
            let rows = &rows[range.start * width..range.end * width];
            self.remember(flight, &part.pairs, &rows[..width]);
            if self.random.happens(chance) && self.has_checker() {
                self.stats.n_check += 1;
                // A row stands for one pair, or for all those of a column.
                let n = (CHECKED * part.n_row / part.pairs.len()).clamp(1, part.n_row);
                let first = self.random.below((part.n_row - n + 1) as u64) as usize;
                let rows = &rows[first * width..(first + n) * width];
                let pairs = flight.data.ranges_of(&part.pairs, first..first + n);
                let claims = vec![(flight.by, self.kept(rows))];
                let case = self.case(flight, pairs, claims);
                self.ask(now, case, actions);
            }
        }
    }

    /// Part of a worker's answers that are checked.
    fn check_chance(&self, peer: PeerId, worker: WorkerId) -> f64 {
        let configured = self.config.check;
        if self.disagreements.doubts(worker) {
            return IN_DOUBT;
        }
        match self.peers.get(&peer) {
            Some(at) if configured > 0.0 => (1.0 / (1.0 + f64::from(at.n_clean) / TRUST)).max(configured),
            _ => configured,
        }
    }

    /// True if there are less checks in progress than there may be.
    fn has_checker(&self) -> bool {
        let checks = self.flights.values().filter(|f| matches!(f.purpose, Purpose::Check(_)));
        let (all, here) =
            checks.fold((0, 0), |(all, here), f| (all + 1, here + usize::from(f.by == By::Hub)));
        all < MOST_CHECKS && here < MOST_HERE
    }

    /// A case of these pairs of a call.
    fn case(&self, flight: &Flight, pairs: Vec<Range<usize>>, claims: Vec<(By, Kept)>) -> Case {
        let (call, data) = (flight.call, flight.data.clone());
        let mut units = self.units_of(&data, pairs.iter().cloned());
        let unit = units.remove(0);
        Case { call, data, pairs, unit, others: units, class: self.class, claims }
    }

    /// Units of the pairs at some ranges of a call.
    fn units_of(&self, data: &CallData, ranges: impl Iterator<Item = Range<usize>>) -> Vec<Unit> {
        let unit = |p: &CallPair| self.config.shape.unit(data.layer, p.expert);
        let mut units: Vec<Unit> =
            pairs_of(data, ranges).iter().map(|p| unit(p).expect("experts of calls are checked")).collect();
        units.dedup();
        units
    }

    /// Two answers to the same part differ.
    pub(super) fn dispute(
        &mut self,
        now: Duration,
        flight: &Flight,
        part: usize,
        claims: Vec<(By, Kept)>,
        actions: &mut Vec<Action>,
    ) {
        self.stats.n_dispute += 1;
        match claims.iter().find(|(by, _)| *by == By::Hub) {
            Some((_, right)) => {
                let wrong: Vec<By> =
                    claims.iter().filter(|(_, k)| !k.agrees(right)).map(|(by, _)| *by).collect();
                wrong.into_iter().for_each(|by| self.accuse(now, by, actions));
            }
            None => {
                let case = self.case(flight, vec![flight.parts[part].pairs.clone()], claims);
                self.ask(now, case, actions);
            }
        }
    }

    /// Asks somebody for an answer to compare with those of a case. A dispute goes to the hub if it can decide.
    fn ask(&mut self, now: Duration, case: Case, actions: &mut Vec<Action>) {
        if case.class != self.class {
            return;
        }
        let is_dispute = case.claims.len() > 1;
        let is_local = self.config.local.is_some();
        let ranges = case.pairs.iter().map(|range| (0, range.clone())).collect();
        let (call, data) = (case.call, case.data.clone());
        let referee = self.referee(now, &case);
        match referee {
            Some(peer) if !(is_dispute && is_local) && case.claims.len() < MOST_CLAIMS => {
                self.send(now, peer, call, data, ranges, Purpose::Check(case), actions);
            }
            _ if is_local => {
                self.compute_ranges(now, call, data, ranges, Purpose::Check(case), actions);
            }
            _ => self.undecided(now, &case, actions),
        }
    }

    /// A holder of the unit on a host without a claim, the least loaded one.
    fn referee(&self, now: Duration, case: &Case) -> Option<PeerId> {
        let hosts: Vec<HostId> = case.claims.iter().filter_map(|(by, _)| by.host()).collect();
        let more = Load {
            n_pair: case.pairs.iter().map(|range| range.len()).sum(),
            n_row: case.data.n_row(case.pairs.iter().cloned()),
            n_part: 1,
        };
        let free = self.holders_of_all(case.unit, &case.others).filter(|p| {
            let is_apart = p.health.is_up() && !hosts.contains(&p.joined.host);
            is_apart && self.has_room(p, Load::default(), more)
        });
        free.min_by(|a, b| a.predicted(now, 1, 0).total_cmp(&b.predicted(now, 1, 0))).map(|p| p.id)
    }

    /// The one that was asked did not answer: another one is, if there is one.
    pub(super) fn recheck(&mut self, now: Duration, case: Case, actions: &mut Vec<Action>) {
        if case.claims.len() > 1 || self.referee(now, &case).is_some() {
            self.ask(now, case, actions);
        }
    }

    /// Compares the answer of the one that was asked.
    pub(super) fn judge(
        &mut self,
        now: Duration,
        mut case: Case,
        by: By,
        rows: &[f32],
        actions: &mut Vec<Action>,
    ) {
        if case.class != self.class {
            return;
        }
        let kept = self.kept(rows);
        let (right, wrong): (Vec<_>, Vec<_>) =
            case.claims.iter().cloned().partition(|(_, k)| k.agrees(&kept));
        for (other, _) in &right {
            self.vouch(*other, by, case.call);
        }
        if by == By::Hub || !right.is_empty() {
            wrong.into_iter().for_each(|(by, _)| self.accuse(now, by, actions));
            return;
        }
        self.stats.n_dispute += u64::from(case.claims.len() == 1);
        case.claims.push((by, kept));
        self.ask(now, case, actions);
    }

    /// Nobody can decide a case: who disagrees with several is to blame.
    fn undecided(&mut self, now: Duration, case: &Case, actions: &mut Vec<Action>) {
        let workers: Vec<By> = case.claims.iter().map(|(by, _)| *by).collect();
        for (i, a) in workers.iter().enumerate() {
            for b in &workers[..i] {
                let (&By::Worker { worker: x, .. }, &By::Worker { worker: y, .. }) = (a, b) else { continue };
                match self.disagreements.add(x, y) {
                    Some(liar) => self.accuse(now, if liar == x { *a } else { *b }, actions),
                    None => actions.push(Action::Undecided { workers: [y, x], call: case.call }),
                }
            }
        }
    }

    /// Two answers agree: both workers are right up to this call.
    pub(super) fn vouch(&mut self, a: By, b: By, call: CallId) {
        for peer in [a, b].into_iter().filter_map(By::peer) {
            if let Some(at) = self.peers.get_mut(&peer) {
                at.clean = at.clean.max(Some(call));
                at.n_clean = at.n_clean.saturating_add(1);
            }
        }
    }

    /// A worker has lied: it is expelled for good, parts of open calls that it made are made again, and the engine
    /// learns from where on its answers are in doubt.
    pub(super) fn accuse(&mut self, now: Duration, by: By, actions: &mut Vec<Action>) {
        let By::Worker { peer, worker, .. } = by else { return };
        if !self.quarantined.insert(worker) {
            return;
        }
        self.stats.n_quarantined += 1;
        let since = self.peers.get(&peer).and_then(|at| at.clean);
        actions.push(Action::Tainted { worker, since });
        self.disagreements.forget(worker);
        self.canaries.retain(|_, (first, _)| *first != worker);
        // Units that were refused for its digests may be announced again.
        self.peers.values_mut().for_each(|p| p.told = None);
        self.probes.clear();
        let connected: Vec<PeerId> =
            self.peers.values().filter(|p| p.joined.worker == worker).map(|p| p.id).collect();
        for peer in connected {
            self.expel(now, peer, CloseReason::Quarantined, actions);
        }
        self.remake(worker);
        self.rebalance_soon(now);
    }

    /// Opens parts again that a worker has made for calls in progress.
    fn remake(&mut self, worker: WorkerId) {
        let is_its = |by: &By| matches!(by, By::Worker { worker: w, .. } if *w == worker);
        let mut again = Vec::new();
        for (&id, Open { parts, n_open, .. }) in &mut self.calls {
            for (i, part) in parts.iter_mut().enumerate() {
                part.answers.retain(|(by, _)| !is_its(by));
                if !part.is_split && part.done.as_ref().is_some_and(is_its) {
                    part.done = None;
                    *n_open += 1;
                }
                again.push((id, i as u16));
            }
        }
        again.into_iter().for_each(|(id, part)| self.reopen(id, part));
    }

    /// Remembers the first row of an answer, to know whether a worker is well that computes it later.
    fn remember(&mut self, flight: &Flight, part: &Range<usize>, row: &[f32]) {
        let ranges = flight.data.ranges_of(part, 0..1);
        let units = self.units_of(&flight.data, ranges.iter().cloned());
        let unit = units[0];
        // A probe stands for long: its unit's first answers, and then one in some hundred.
        if self.probes.contains_key(&unit) && self.random.below(256) > 0 {
            return;
        }
        let width = self.config.shape.width as usize;
        let mut pairs = pairs_of(&flight.data, ranges.iter().cloned());
        let x = flight.data.x[usize::from(pairs[0].column) * width..][..width].into();
        pairs.iter_mut().for_each(|p| p.column = 0);
        let all = flight.data.weights.as_ref();
        let weights =
            all.map(|all| ranges.iter().flat_map(|range| all[range.clone()].iter().copied()).collect());
        let (at, format) =
            ((flight.data.layer, flight.data.step_columns), (self.config.shape.width, self.config.input));
        let data = CallData::new(at, x, (pairs, weights), format);
        self.probes.insert(unit, Probe { units, data: Arc::new(data), kept: self.kept(row) });
    }

    /// Sends a canary: a product that is known, or a PING if none is.
    pub(super) fn canary(&mut self, now: Duration, peer: PeerId, actions: &mut Vec<Action>) {
        let Some(at) = self.peers.get_mut(&peer) else { return };
        if at.health.is_up() || at.health.canary_at().is_none() {
            return;
        }
        at.health.canary_sent();
        let is_held = |probe: &&Probe| probe.units.iter().all(|unit| at.holds.contains(unit));
        let probe = at.holds.iter().filter_map(|unit| self.probes.get(unit)).find(is_held);
        self.stats.n_canary += 1;
        match probe {
            Some(Probe { data, kept, .. }) => {
                let (data, kept) = (data.clone(), kept.clone());
                let whole = vec![(0, 0..data.pairs.len())];
                self.send(now, peer, CallId(0), data, whole, Purpose::Canary(kept), actions);
            }
            None => self.ping(now, peer, actions),
        }
    }
}
