//! Units of a worker: held, wanted, and the one that loads.

use std::collections::BTreeMap;
use std::time::Duration;

use chaski_wire::{Body, Control, Digest, Frame, Have};

use super::{Timer, Worker, WorkerAction};
use crate::unit::Unit;

/// First and longest time before a unit that could not be loaded is tried again.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Units of a worker.
#[derive(Debug)]
pub(super) struct Units {
    memory: u64,
    /// Most experts of one layer.
    slots: Option<u32>,
    held: BTreeMap<Unit, Digest>,
    /// Bytes of the units that are held.
    bytes: u64,
    /// Units of the last ASSIGN, the most wanted first; `None` before it.
    wanted: Option<Vec<Unit>>,
    /// Units of an ASSIGN that is not complete.
    begun: Vec<Unit>,
    /// The unit that loads, since when, and the tasks that had come until then.
    loading: Option<(Unit, Duration, u64)>,
    /// Time before a load that failed is tried again.
    again: Duration,
    /// No load begins before.
    not_before: Duration,
}

impl Units {
    pub(super) fn new(memory: u64, slots: Option<u32>) -> Self {
        Self {
            memory,
            slots,
            held: BTreeMap::new(),
            bytes: 0,
            wanted: None,
            begun: Vec::new(),
            loading: None,
            again: AGAIN.0,
            not_before: Duration::ZERO,
        }
    }

    pub(super) fn held(&self) -> impl Iterator<Item = Unit> + '_ {
        self.held.keys().copied()
    }

    pub(super) fn has(&self, unit: Unit) -> bool {
        self.held.contains_key(&unit)
    }

    /// A new connection has an assignment of its own.
    pub(super) fn forget_assignment(&mut self) {
        self.wanted = None;
        self.begun.clear();
    }

    fn is_wanted(&self, unit: Unit) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&unit))
    }
}

impl Worker {
    /// The units of a message; `None` if the model does not have one of them.
    pub(super) fn named(&self, units: &[chaski_wire::Unit]) -> Option<Vec<Unit>> {
        units.iter().map(|unit| self.config.shape.named(unit)).collect()
    }

    /// ASSIGN: what it does not name is freed, what it names and is held is announced again.
    pub(super) fn assigned(
        &mut self,
        epoch: u32,
        units: Vec<Unit>,
        more: bool,
        actions: &mut Vec<WorkerAction>,
    ) {
        // A hub that never ends an assignment gets no more memory than the model has units.
        if self.units.begun.len() <= self.config.shape.units().count() {
            self.units.begun.extend(units);
        }
        if more {
            return;
        }
        self.epoch = epoch;
        let wanted = std::mem::take(&mut self.units.begun);
        let held: Vec<Unit> = wanted.iter().copied().filter(|&unit| self.units.has(unit)).collect();
        self.units.wanted = Some(wanted);
        held.into_iter().for_each(|unit| self.announce(unit, actions));
    }

    /// HAVE, one for each unit, whose digest it has.
    pub(super) fn announce(&self, unit: Unit, actions: &mut Vec<WorkerAction>) {
        let Some(&canary) = self.units.held.get(&unit) else { return };
        let experts = self.config.shape.experts(unit).collect();
        let units = vec![chaski_wire::Unit::Experts { layer: unit.layer, experts }];
        let have = Have { epoch: self.epoch, units, canary };
        self.send(Frame::plain(Body::Control(Control::Have(have))), actions);
    }

    /// Frees units that are not wanted, once no task uses them.
    pub(super) fn unload(&mut self, actions: &mut Vec<WorkerAction>) {
        let is_free = |unit: &Unit| !self.units.is_wanted(*unit) && !self.queue.uses(*unit);
        let free: Vec<Unit> = self.units.held().filter(is_free).collect();
        for unit in free {
            self.units.held.remove(&unit);
            self.units.bytes -= self.config.shape.bytes(unit);
            actions.push(WorkerAction::Unload(unit));
        }
    }

    /// Begins to load the next unit that has room.
    pub(super) fn load(&mut self, now: Duration, actions: &mut Vec<WorkerAction>) {
        if self.units.loading.is_some() {
            return;
        }
        let shape = &self.config.shape;
        let n_expert = |layer: u16| {
            let held = self.units.held().filter(|unit| unit.layer == layer);
            held.map(|unit| shape.experts(unit).len()).sum::<usize>()
        };
        let has_slots = |unit: &Unit| {
            let needed = n_expert(unit.layer) + shape.experts(*unit).len();
            self.units.slots.is_none_or(|most| needed <= most as usize)
        };
        let has_room =
            |unit: &Unit| self.units.bytes + shape.bytes(*unit) <= self.units.memory && has_slots(unit);
        let wanted = self.units.wanted.iter().flatten().copied();
        let Some(unit) = wanted.filter(|&unit| !self.units.has(unit)).find(has_room) else { return };
        if now < self.units.not_before {
            return self.timers.set(Timer::Load, self.units.not_before);
        }
        self.units.loading = Some((unit, now, self.queue.n_come()));
        actions.push(WorkerAction::Load(unit));
    }

    /// A unit is there, or could not be loaded.
    pub(super) fn loaded(
        &mut self,
        now: Duration,
        unit: Unit,
        canary: Option<Digest>,
        actions: &mut Vec<WorkerAction>,
    ) {
        let Some((_, since, n_come)) = self.units.loading.take_if(|(loading, ..)| *loading == unit) else {
            return;
        };
        match canary {
            Some(canary) => {
                self.units.held.insert(unit, canary);
                self.units.bytes += self.config.shape.bytes(unit);
                self.units.again = AGAIN.0;
                // Loads take half of the link while tasks come.
                let is_busy = self.queue.n_come() > n_come;
                self.units.not_before = if is_busy { now + (now - since) } else { now };
                self.announce(unit, actions);
            }
            None => {
                self.units.not_before = now + self.units.again;
                self.units.again = (2 * self.units.again).min(AGAIN.1);
                // Others come first.
                if let Some(wanted) = &mut self.units.wanted
                    && let Some(at) = wanted.iter().position(|w| *w == unit)
                {
                    wanted[at..].rotate_left(1);
                }
            }
        }
    }
}
