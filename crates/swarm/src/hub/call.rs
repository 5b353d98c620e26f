//! Calls in progress: their beginning and their ends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::flight::CallData;
use super::parts::{Cut, Part};
use super::{Action, Call, CallError, Hub, Timer};
use crate::unit::CallId;

/// Weight that a unit's count keeps when it is halved.
const FADE: f64 = 0.5;
/// Rows after which counts are halved.
const MANY: f64 = 1e6;

/// A call in progress.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) begin: Duration,
    pub(super) data: Arc<CallData>,
    pub(super) parts: Vec<Part>,
    /// Rows `[n_pair, width]`, in the order of parts; those of parts that are not done are zero.
    pub(super) rows: Vec<f32>,
    /// The pair of the engine's call at each of these rows, if their order is another one.
    pub(super) order: Option<Vec<u32>>,
    /// Parts that are not done.
    pub(super) n_open: usize,
}

impl Hub {
    /// Begins a call.
    pub(super) fn open(&mut self, now: Duration, call: Call, actions: &mut Vec<Action>) {
        let id = call.id;
        let error = self.check_call(&call).err();
        if let Some(error) = error {
            return actions.push(Action::Fail { call: id, error });
        }
        if self.class.is_none() && self.config.exact {
            self.choose_class();
        }
        let width = self.config.shape.width as usize;
        let Call { layer, step_columns, x, pairs, weights, .. } = call;
        let is_summed = self.sums() && !weights.is_empty();
        let Cut { parts, order } = match is_summed {
            true => self.cut_sums(layer, &pairs),
            false => self.cut(layer, &pairs),
        };
        for pair in &pairs {
            let unit = self.config.shape.unit(layer, pair.expert).expect("experts of calls are checked");
            *self.counts.entry(unit).or_default() += 1.0;
        }
        self.waiting.extend((0..parts.len()).map(|part| (id, part as u16)));
        self.fade();
        self.stats.n_call += 1;
        let rows = vec![0.0; pairs.len() * width];
        let (pairs, weights) = match &order {
            Some(order) => (
                order.iter().map(|&i| pairs[i as usize]).collect(),
                order.iter().map(|&i| weights[i as usize]).collect(),
            ),
            None => (pairs, weights),
        };
        let format = (self.config.shape.width, self.config.input);
        let data = CallData::new((layer, step_columns), x, (pairs, is_summed.then_some(weights)), format);
        let n_open = parts.len();
        self.calls.insert(id, Open { begin: now, data: Arc::new(data), parts, rows, order, n_open });
        if n_open == 0 {
            self.complete(now, id, actions);
        }
    }

    fn check_call(&self, call: &Call) -> Result<(), CallError> {
        let (layer, limit) = (call.layer, self.config.bounds.n_call);
        if self.calls.len() >= limit {
            return Err(CallError::Full { limit });
        }
        let invalid = |what, found: usize, expected: usize| {
            Err(CallError::Invalid { layer, what, found: found as u64, expected: expected as u64 })
        };
        let Some(shape) = self.config.shape.layer(layer) else {
            return invalid("layers of experts with this number", 0, 1);
        };
        let width = self.config.shape.width as usize;
        let n_column = call.x.len() / width.max(1);
        if n_column * width != call.x.len() || n_column > 1 << 16 {
            return invalid("values of columns", call.x.len(), n_column * width);
        }
        if (call.step_columns as usize) < n_column {
            return invalid("columns of the step", call.step_columns as usize, n_column);
        }
        if call.pairs.len() > usize::from(u16::MAX) * usize::from(shape.n_expert) {
            return invalid("pairs", call.pairs.len(), usize::from(u16::MAX) * usize::from(shape.n_expert));
        }
        if let Some(at) = call.x.iter().position(|v| !v.is_finite()) {
            return invalid("index of a value that is not finite", at, call.x.len());
        }
        if let Some(pair) = call.pairs.iter().find(|p| p.expert >= shape.n_expert) {
            return invalid("expert", pair.expert.into(), shape.n_expert.into());
        }
        if let Some(pair) = call.pairs.iter().find(|p| usize::from(p.column) >= n_column) {
            return invalid("column", pair.column.into(), n_column);
        }
        if ![0, call.pairs.len()].contains(&call.weights.len()) {
            return invalid("weights of pairs", call.weights.len(), call.pairs.len());
        }
        if let Some(at) = call.weights.iter().position(|w| !w.is_finite()) {
            return invalid("index of a weight that is not finite", at, call.weights.len());
        }
        let key = |p: &super::CallPair| (p.expert, p.column);
        match call.pairs.windows(2).position(|w| key(&w[0]) >= key(&w[1])) {
            Some(at) => invalid("index of a pair out of order", at + 1, call.pairs.len()),
            None if self.calls.contains_key(&call.id) => invalid("calls with this id in progress", 1, 0),
            None => Ok(()),
        }
    }

    /// Halves the counts of units once they are large: use changes with the text.
    fn fade(&mut self) {
        if self.counts.values().sum::<f64>() > MANY {
            self.counts.values_mut().for_each(|c| *c *= FADE);
        }
    }

    /// Ends a call that has all rows.
    pub(super) fn complete(&mut self, now: Duration, id: CallId, actions: &mut Vec<Action>) {
        if let Some(open) = self.calls.remove(&id) {
            self.close_call(now, id, &open);
            let Open { rows, order, .. } = open;
            let rows = match order {
                Some(order) => in_order(&order, &rows, self.config.shape.width as usize),
                None => rows,
            };
            actions.push(Action::Complete { call: id, rows });
        }
    }

    /// Ends a call that cannot be answered.
    pub(super) fn give_up(&mut self, now: Duration, id: CallId, error: CallError, actions: &mut Vec<Action>) {
        if let Some(open) = self.calls.remove(&id) {
            self.close_call(now, id, &open);
            self.stats.n_failed += 1;
            actions.push(Action::Fail { call: id, error });
        }
    }

    /// The engine does not want a call any more.
    pub(super) fn abandon(&mut self, now: Duration, id: CallId, _actions: &mut Vec<Action>) {
        if let Some(open) = self.calls.remove(&id) {
            self.close_call(now, id, &open);
        }
    }

    /// Forgets all that belongs to a call: tasks that still run for it are cancelled.
    fn close_call(&mut self, now: Duration, id: CallId, open: &Open) {
        let flights: BTreeSet<u64> = open.parts.iter().flat_map(|p| p.flights.iter().copied()).collect();
        flights.into_iter().for_each(|task| self.settle(now, task));
        for part in 0..open.parts.len() {
            self.waiting.remove(&(id, part as u16));
        }
        self.timers.cancel(Timer::Orphan(id));
        self.timers.cancel(Timer::Retry(id));
        self.release_class(now);
    }

    /// Nobody could make a part for as long as it may wait.
    pub(super) fn orphaned(&mut self, now: Duration, id: CallId, actions: &mut Vec<Action>) {
        let Some(open) = self.calls.get(&id) else { return };
        let since = open.parts.iter().filter(|p| !p.is_over()).filter_map(|p| Some((p.orphaned?, p)));
        let Some((since, part)) = since.min_by_key(|(since, _)| *since) else { return };
        let due = since + self.config.bounds.orphan;
        if due > now {
            return self.timers.set(Timer::Orphan(id), due);
        }
        let (layer, expert) = (open.data.layer, open.data.pairs[part.pairs.start].expert);
        self.orphans.insert(part.unit, (since, now));
        self.give_up(now, id, CallError::NoHolder { layer, expert, waited: now - since }, actions);
        self.doubt_class(now);
    }

    /// Workers that refused parts of a call may be asked again.
    pub(super) fn retry(&mut self, id: CallId) {
        if let Some(open) = self.calls.get_mut(&id) {
            open.parts.iter_mut().for_each(|p| p.avoid.clear());
        }
    }
}

/// Rows in the order of the engine's pairs, from those in the order of parts.
fn in_order(order: &[u32], rows: &[f32], width: usize) -> Vec<f32> {
    let mut out = vec![0.0; rows.len()];
    for (&to, row) in order.iter().zip(rows.chunks_exact(width)) {
        out[to as usize * width..][..width].copy_from_slice(row);
    }
    out
}
