//! Frames of workers: answers that complete parts and calls, failures, and the rest.

use std::time::Duration;

use chaski_wire::{Answer, Body, Control, Fail, FailCode, Frame};

use super::flight::{By, Flight, Purpose};
use super::times::Last;
use super::{Action, CloseReason, Hub, Timer};
use crate::hedge::tail;
use crate::unit::{CallId, PeerId};
use crate::verify::Kept;

/// Wrong frames after which a connection is closed.
const STRIKES: u32 = 3;
/// Time before a worker that refused a part is asked again.
const RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_secs(1);

impl Hub {
    /// Takes a frame of a worker.
    pub(super) fn frame(&mut self, now: Duration, peer: PeerId, frame: Frame, actions: &mut Vec<Action>) {
        if !self.heard(now, peer) {
            return;
        }
        match frame.body {
            Body::Result { answer, sum } => {
                let values = answer.rows.to_f32();
                let name = (frame.task, frame.epoch, frame.layer);
                self.result(now, peer, name, (sum, &answer, &values), actions);
            }
            Body::Fail(fail) => self.failed(now, peer, frame.task, &fail, actions),
            Body::State(state) => self.state(now, peer, state),
            Body::Pong(clock) => self.pong(now, peer, clock),
            Body::Ping(clock) => {
                actions.push(Action::Send { peer, frame: Frame::plain(Body::Pong(clock)) });
            }
            Body::Control(Control::Have(have)) => self.have(now, peer, &have, actions),
            Body::Control(Control::Drain(_)) => self.drain(now, peer),
            other => {
                let text = format!("{:?} is nothing that a worker sends", other.kind());
                self.strike(now, peer, 0, &text, actions);
            }
        }
    }

    /// Something came over a connection; false if it is closed.
    pub(super) fn heard(&mut self, now: Duration, peer: PeerId) -> bool {
        let Some(at) = self.peers.get_mut(&peer) else { return false };
        let silence = now.saturating_sub(at.heard);
        at.heard = now;
        if at.health.heard(now, silence) {
            self.timers.set(Timer::Canary(peer), now);
        }
        true
    }

    /// A frame that could not be decoded. A task that it belongs to is made by somebody else.
    pub(super) fn malformed(&mut self, now: Duration, peer: PeerId, task: u64, actions: &mut Vec<Action>) {
        if self.is_of(task, peer) {
            self.refused(now, task, RETRY, actions);
        }
        self.strike(now, peer, task, "the frame cannot be decoded", actions);
    }

    /// A frame that the protocol does not allow: FAIL, and the third time the end.
    pub(super) fn strike(
        &mut self,
        now: Duration,
        peer: PeerId,
        task: u64,
        text: &str,
        actions: &mut Vec<Action>,
    ) {
        let Some(at) = self.peers.get_mut(&peer) else { return };
        at.strikes += 1;
        self.stats.n_strike += 1;
        let fail = Body::Fail(Fail::new(FailCode::BAD_FRAME, 0, text));
        let is_last = at.strikes >= STRIKES;
        actions.push(Action::Send { peer, frame: Frame { task, ..Frame::plain(fail) } });
        if is_last {
            self.expel(now, peer, CloseReason::Malformed, actions);
        }
    }

    fn is_of(&self, task: u64, peer: PeerId) -> bool {
        self.flights.get(&task).is_some_and(|f| f.by.peer() == Some(peer))
    }

    /// RESULT, with its values.
    pub(super) fn result(
        &mut self,
        now: Duration,
        peer: PeerId,
        (task, epoch, layer): (u64, u32, u16),
        (sum, answer, values): (bool, &Answer, &[f32]),
        actions: &mut Vec<Action>,
    ) {
        if !self.is_of(task, peer) {
            // Answers come after their CANCEL, and after the hub has ceased to wait; only ids that were never given
            // out, or to somebody else, are wrong.
            if task >= self.next_task || self.flights.contains_key(&task) {
                self.strike(now, peer, task, "the task is not this worker's", actions);
            }
            return;
        }
        let flight = &self.flights[&task];
        let width = self.config.shape.width;
        let is_right = epoch == flight.epoch && layer == flight.data.layer;
        let is_right = is_right && sum == flight.data.weights.is_some();
        let n_value = flight.n_row * width as usize;
        let is_whole = answer.rows.n_row() as usize == flight.n_row && answer.rows.width() == width;
        if !is_right || !is_whole || values.len() != n_value {
            self.refused(now, task, RETRY, actions);
            return self.strike(now, peer, task, "the answer does not have the shape of its task", actions);
        }
        let flight = self.land(task);
        self.stats.n_sum += (flight.n_pair - flight.n_row) as u64;
        self.sample(now, peer, &flight, answer);
        let last = self.calls.get(&flight.call).map(|open| {
            let us = |us: u32| Duration::from_micros(us.into());
            let (call, sent, n_byte) = (flight.call, flight.sent, flight.n_byte);
            let at_worker = [us(answer.queued), us(answer.running)];
            Last { call, begin: open.begin, sent, step_columns: open.data.step_columns, n_byte, at_worker }
        });
        self.received(now, flight, values, actions);
        if let Some(last) = last {
            self.note_times(now, last);
        }
    }

    /// The hub's own products.
    pub(super) fn computed(
        &mut self,
        now: Duration,
        task: u64,
        rows: Option<Vec<f32>>,
        actions: &mut Vec<Action>,
    ) {
        if self.flights.get(&task).is_none_or(|f| f.by != By::Hub) {
            return;
        }
        let flight = self.land(task);
        let expected = flight.n_pair * self.config.shape.width as usize;
        match rows.filter(|rows| rows.len() == expected) {
            Some(rows) => {
                let ranges: Vec<_> = flight.ranges().collect();
                let rows = flight.data.answer_of(&ranges, rows);
                self.received(now, flight, &rows, actions);
            }
            None => self.not_computed(now, flight, actions),
        }
    }

    /// Takes a task out of all tables.
    fn land(&mut self, task: u64) -> Flight {
        let flight = self.flights.remove(&task).expect("the task is in flight");
        self.timers.cancel(Timer::Late(task));
        self.timers.cancel(Timer::Overdue(task));
        if let Some(at) = flight.by.peer().and_then(|peer| self.peers.get_mut(&peer)) {
            at.settled.remove(&task);
            if at.flights.remove(&task) {
                at.n_pair -= flight.n_pair;
                at.n_byte -= flight.n_byte;
            }
        }
        if let Some(open) = self.calls.get_mut(&flight.call) {
            open.parts.iter_mut().for_each(|p| p.flights.retain(|&t| t != task));
        }
        flight
    }

    /// Learns from the times of an answer.
    fn sample(&mut self, now: Duration, peer: PeerId, flight: &Flight, answer: &Answer) {
        let Some(at) = self.peers.get_mut(&peer) else { return };
        let whole = (now - flight.sent).as_secs_f64();
        let seconds = |us: u32| f64::from(us) * 1e-6;
        at.sample(
            now,
            flight.n_pair,
            flight.n_byte,
            (whole, seconds(answer.queued), seconds(answer.running)),
        );
        if flight.settled.is_none() && !flight.hedged {
            at.health.answered();
        }
        self.sample_ratio(whole / flight.predicted.max(1e-6));
    }

    /// Learns from the ratio of an answer's time to its prediction.
    fn sample_ratio(&mut self, ratio: f64) {
        if self.answers.add(ratio) {
            self.tail.add(tail(&self.answers, self.config.budget));
        }
    }

    /// Uses rows for the purpose of their task.
    fn received(&mut self, now: Duration, flight: Flight, rows: &[f32], actions: &mut Vec<Action>) {
        match flight.purpose {
            Purpose::Serve { late } => self.served(now, flight, late, rows, actions),
            Purpose::Check(case) => self.judge(now, case, flight.by, rows, actions),
            Purpose::Canary(kept) => {
                let Some(peer) = flight.by.peer() else { return };
                self.canary_back(now, peer, Some(kept.agrees(&self.kept(rows))), actions);
            }
        }
    }

    /// Rows for parts of a call.
    fn served(&mut self, now: Duration, flight: Flight, late: bool, rows: &[f32], actions: &mut Vec<Action>) {
        let width = self.config.shape.width as usize;
        let mut is_used = false;
        for (i, part) in flight.parts.iter().enumerate() {
            let range = flight.rows_of(i);
            let rows = &rows[range.start * width..range.end * width];
            match &part.used {
                Some((by, kept)) => {
                    if !kept.agrees(&self.kept(rows)) {
                        let claims = vec![(*by, kept.clone()), (flight.by, self.kept(rows))];
                        self.dispute(now, &flight, i, claims, actions);
                    } else {
                        self.vouch(*by, flight.by, flight.call);
                    }
                }
                None => is_used |= self.take(now, &flight, part.part, rows, actions),
            }
        }
        if is_used && late {
            self.beaten(now, &flight, actions);
        }
        if is_used {
            self.spot_check(now, &flight, rows, actions);
        }
        if self.calls.get(&flight.call).is_some_and(|open| open.n_open == 0) {
            self.complete(now, flight.call, actions);
        }
    }

    /// Rows for an open part; true if they are used at once.
    fn take(
        &mut self,
        now: Duration,
        flight: &Flight,
        part: u16,
        rows: &[f32],
        actions: &mut Vec<Action>,
    ) -> bool {
        let width = self.config.shape.width as usize;
        let is_normal = self.is_normal(flight, part, rows);
        let has_other = self.has_other(flight, part);
        let Some(open) = self.calls.get_mut(&flight.call) else { return false };
        let target = &mut open.parts[usize::from(part)];
        if target.is_over() {
            return false;
        }
        if !is_normal && has_other {
            // Somebody else must confirm an answer that is far from all before.
            target.wanted = target.wanted.max(2);
        }
        if target.wanted > 1 {
            target.answers.push((flight.by, rows.to_vec()));
            return self.agree(now, flight, part, actions);
        }
        let pairs = target.pairs.clone();
        open.data.put(&pairs, rows, &mut open.rows, width);
        self.finish(now, flight.call, part, flight.by, rows);
        true
    }

    /// Looks for two answers to a part that agree; true if it is done.
    fn agree(&mut self, now: Duration, flight: &Flight, part: u16, actions: &mut Vec<Action>) -> bool {
        let width = self.config.shape.width as usize;
        let target = &self.calls[&flight.call].parts[usize::from(part)];
        let kept: Vec<(By, Kept)> = target.answers.iter().map(|(by, rows)| (*by, self.kept(rows))).collect();
        // The hub's own products need nobody's agreement.
        let pair = (0..kept.len()).find_map(|i| match kept[i].0 {
            By::Hub => Some((i, i)),
            By::Worker { .. } => (0..i).find(|&j| kept[i].1.agrees(&kept[j].1)).map(|j| (j, i)),
        });
        let pairs = target.pairs.clone();
        let Some((first, second)) = pair else {
            if kept.len() >= target.wanted {
                let call = self.calls.get_mut(&flight.call).expect("the call is in progress");
                call.parts[usize::from(part)].wanted = kept.len() + 1;
            }
            self.reopen(flight.call, part);
            return false;
        };
        let open = self.calls.get_mut(&flight.call).expect("the call is in progress");
        let rows = std::mem::take(&mut open.parts[usize::from(part)].answers).swap_remove(first).1;
        open.data.put(&pairs, &rows, &mut open.rows, width);
        let (by, right) = kept[first].clone();
        self.vouch(by, kept[second].0, flight.call);
        self.finish(now, flight.call, part, by, &rows);
        for (by, wrong) in kept.into_iter().filter(|(_, k)| !k.agrees(&right)) {
            debug_assert!(wrong != right);
            self.accuse(now, by, actions);
        }
        true
    }

    /// Uses an odd answer that nobody can confirm any more, unless all answers must be confirmed.
    pub(super) fn use_unconfirmed(&mut self, now: Duration, id: CallId, part: u16) {
        let width = self.config.shape.width as usize;
        let Some(open) = self.calls.get_mut(&id).filter(|_| !self.config.verify_all) else { return };
        let target = &mut open.parts[usize::from(part)];
        if !target.flights.is_empty() || target.answers.is_empty() {
            return;
        }
        let (by, rows) = target.answers.swap_remove(0);
        let pairs = target.pairs.clone();
        open.data.put(&pairs, &rows, &mut open.rows, width);
        self.finish(now, id, part, by, &rows);
    }

    /// Marks a part as done by `rows`, and settles tasks that nobody needs any more.
    fn finish(&mut self, now: Duration, id: CallId, part: u16, by: By, rows: &[f32]) {
        let is_exact = self.config.exact;
        let Some(open) = self.calls.get_mut(&id) else { return };
        let target = &mut open.parts[usize::from(part)];
        (target.done, target.orphaned) = (Some(by), None);
        open.n_open -= 1;
        self.waiting.remove(&(id, part));
        let others = std::mem::take(&mut target.flights);
        if others.is_empty() {
            return;
        }
        let kept = Kept::of(rows, is_exact);
        for task in others {
            let Some(flight) = self.flights.get_mut(&task) else { continue };
            for p in flight.parts.iter_mut().filter(|p| p.part == part) {
                p.used = Some((by, kept.clone()));
            }
            if flight.parts.iter().all(|p| p.used.is_some()) {
                self.settle(now, task);
            }
        }
    }

    /// A late hedge was faster: its answer completed parts of these other tasks, whose workers missed them.
    fn beaten(&mut self, now: Duration, hedge: &Flight, actions: &mut Vec<Action>) {
        let is_beaten = |f: &Flight| {
            let is_same = f.call == hedge.call && f.hedged;
            is_same && f.parts.iter().any(|p| hedge.parts.iter().any(|h| h.part == p.part))
        };
        let beaten = self.flights.values().filter(|f| is_beaten(f));
        let beaten: Vec<(PeerId, Duration)> = beaten.filter_map(|f| Some((f.by.peer()?, f.sent))).collect();
        self.stats.n_hedge_won += 1;
        for (peer, sent) in beaten {
            let is_suspect = self.peers.get_mut(&peer).is_some_and(|at| at.health.missed(now, sent));
            if is_suspect {
                self.suspected(now, peer, actions);
            }
        }
    }

    /// FAIL for a task, or a complaint about another frame.
    fn failed(&mut self, now: Duration, peer: PeerId, task: u64, fail: &Fail, actions: &mut Vec<Action>) {
        self.stats.n_refused += 1;
        let pause = Duration::from_micros(fail.retry_after.into()).clamp(RETRY, LONGEST_RETRY);
        let Some(at) = self.peers.get_mut(&peer) else { return };
        match fail.code {
            FailCode::BUSY => at.busy_until = at.busy_until.max(now + pause),
            FailCode::LATE | FailCode::EPOCH | FailCode::COLUMNS => {}
            FailCode::NOT_HELD => self.lost_units(now, peer, task),
            _ => {
                at.strikes += 1;
                if at.strikes >= STRIKES {
                    return self.expel(now, peer, CloseReason::Malformed, actions);
                }
            }
        }
        if self.is_of(task, peer) {
            self.refused(now, task, pause, actions);
        }
    }

    /// A worker does not have the units of a task: they are not its any more.
    fn lost_units(&mut self, now: Duration, peer: PeerId, task: u64) {
        if !self.is_of(task, peer) {
            return;
        }
        let flight = &self.flights[&task];
        let layer = flight.data.layer;
        let units: Vec<_> =
            flight.pairs().iter().filter_map(|p| self.config.shape.unit(layer, p.expert)).collect();
        for unit in units {
            self.drop_holder(peer, unit);
        }
        if let Some(at) = self.peers.get_mut(&peer) {
            at.told = None;
        }
        self.rebalance_soon(now);
    }

    /// A task that comes back without rows: its parts go to others, for some time.
    fn refused(&mut self, now: Duration, task: u64, pause: Duration, actions: &mut Vec<Action>) {
        let flight = self.land(task);
        match flight.purpose {
            Purpose::Serve { .. } => {
                self.timers.set_by(Timer::Retry(flight.call), now + pause);
                self.reassign(&flight, true);
            }
            Purpose::Check(case) => self.recheck(now, case, actions),
            Purpose::Canary(_) => {
                if let Some(peer) = flight.by.peer() {
                    self.canary_back(now, peer, None, actions);
                }
            }
        }
    }

    /// The hub could not make its own products.
    fn not_computed(&mut self, now: Duration, flight: Flight, actions: &mut Vec<Action>) {
        match flight.purpose {
            Purpose::Serve { .. } if flight.settled.is_none() => {
                let (layer, expert) = (flight.data.layer, flight.pairs().first().map_or(0, |p| p.expert));
                self.give_up(now, flight.call, super::CallError::Local { layer, expert }, actions);
            }
            Purpose::Check(case) => self.recheck(now, case, actions),
            Purpose::Serve { .. } | Purpose::Canary(_) => {}
        }
    }

    /// Gives the parts of a task that is lost to others.
    pub(super) fn reassign(&mut self, flight: &Flight, avoid: bool) {
        for part in &flight.parts {
            let open = self.calls.get_mut(&flight.call);
            let target = open.and_then(|open| open.parts.get_mut(usize::from(part.part)));
            if let (Some(target), Some(peer), true) = (target, flight.by.peer(), avoid) {
                target.avoid.insert(peer);
            }
            self.reopen(flight.call, part.part);
        }
    }

    /// The answer of a task is overdue: its worker is suspect. An answer that is not wanted any more and does not come
    /// is forgotten.
    pub(super) fn overdue(&mut self, now: Duration, task: u64, actions: &mut Vec<Action>) {
        if !self.flights.contains_key(&task) {
            return;
        }
        let flight = self.land(task);
        let peer = flight.by.peer();
        if let Some(settled) = flight.settled {
            // The ratio was at least this.
            self.sample_ratio((settled - flight.sent).as_secs_f64() / flight.predicted.max(1e-6));
            return;
        }
        // A worker that was stopped should not begin with what nobody waits for.
        peer.into_iter().for_each(|peer| self.cancelled.entry(peer).or_default().push(task));
        match flight.purpose {
            Purpose::Serve { .. } => self.reassign(&flight, false),
            Purpose::Check(case) => self.recheck(now, case, actions),
            Purpose::Canary(_) => {
                return peer.into_iter().for_each(|peer| self.canary_back(now, peer, None, actions));
            }
        }
        if let Some(peer) = peer
            && self.peers.get_mut(&peer).is_some_and(|at| at.health.suspect(now))
        {
            self.suspected(now, peer, actions);
        }
    }

    pub(super) fn kept(&self, rows: &[f32]) -> Kept {
        Kept::of(rows, self.config.exact)
    }
}
