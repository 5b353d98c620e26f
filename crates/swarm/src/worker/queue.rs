//! Tasks of a worker: one runs, a few wait, the rest is refused.

use std::collections::VecDeque;
use std::time::Duration;

use chaski_wire::{Answer, Body, Fail, FailCode, Frame, Rows, Task};

use super::{Worker, WorkerAction};
use crate::sum::sums;
use crate::unit::Unit;

/// A task and when it came.
#[derive(Debug)]
struct Waiting {
    name: (u64, u32, u16),
    task: Task,
    units: Vec<Unit>,
    came: Duration,
}

/// The task that runs.
#[derive(Debug)]
struct Running {
    name: (u64, u32, u16),
    units: Vec<Unit>,
    answer: chaski_wire::Dtype,
    n_pair: usize,
    /// Sums that are asked for in place of products.
    sums: Option<Sums>,
    came: Duration,
    began: Duration,
    /// The connection that asked for it is still there.
    is_wanted: bool,
}

/// Sums of a task.
#[derive(Debug)]
struct Sums {
    n_column: usize,
    weights: Vec<f32>,
    /// Column and slot of each pair.
    places: Vec<(u16, u16)>,
}

impl Sums {
    /// `None` for a task that wants one row a pair.
    fn of(task: &Task) -> Option<Sums> {
        let places = || task.pairs.iter().map(|p| (p.column, p.slot)).collect();
        let weights = task.weights.clone()?;
        Some(Sums { n_column: task.rows.n_row() as usize, weights, places: places() })
    }
}

/// Tasks of a worker.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    running: Option<Running>,
    limit: usize,
    /// Time of the last task that ran.
    last: Duration,
    /// Tasks that came, in all.
    n_come: u64,
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), running: None, limit, last: Duration::ZERO, n_come: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn n_come(&self) -> u64 {
        self.n_come
    }

    /// Drops tasks that wait. The one that runs is not broken off, and its answer is sent.
    pub(super) fn cancel(&mut self, ids: &[u64]) {
        self.waiting.retain(|w| !ids.contains(&w.name.0));
    }

    /// Drops all tasks: nobody is there to take their answers.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.running.iter_mut().for_each(|r| r.is_wanted = false);
    }

    /// True if a task needs a unit.
    pub(super) fn uses(&self, unit: Unit) -> bool {
        let waits = self.waiting.iter().any(|w| w.units.contains(&unit));
        waits || self.running.as_ref().is_some_and(|r| r.units.contains(&unit))
    }
}

impl Worker {
    /// TASK: waits for its turn, or is refused.
    pub(super) fn task(
        &mut self,
        now: Duration,
        name: (u64, u32, u16),
        task: Task,
        actions: &mut Vec<WorkerAction>,
    ) {
        self.queue.n_come += 1;
        let shape = &self.config.shape;
        let experts = task.runs.iter().map(|run| shape.unit(name.2, run.expert));
        let Some(units) = experts.collect::<Option<Vec<Unit>>>() else {
            return self.strike(name.0, "an expert that the model does not have", actions);
        };
        if task.rows.width() != shape.width {
            return self.strike(name.0, "rows of another width", actions);
        }
        if !units.iter().all(|&unit| self.units.has(unit)) {
            return self.refuse(name, FailCode::NOT_HELD, Duration::ZERO, actions);
        }
        if self.queue.waiting.len() >= self.queue.limit && self.queue.running.is_some() {
            let pause = self.queue.last * self.queue.limit as u32 / 2;
            return self.refuse(name, FailCode::BUSY, pause, actions);
        }
        self.queue.waiting.push_back(Waiting { name, task, units, came: now });
    }

    /// Starts the next task, if none runs. One that waited longer than its budget is refused.
    pub(super) fn start(&mut self, now: Duration, actions: &mut Vec<WorkerAction>) {
        while self.queue.running.is_none() {
            let Some(Waiting { name, task, units, came }) = self.queue.waiting.pop_front() else { return };
            let budget = Duration::from_micros(task.budget.into());
            if !budget.is_zero() && now - came > budget {
                self.refuse(name, FailCode::LATE, Duration::ZERO, actions);
                continue;
            }
            let (answer, n_pair, sums) = (task.answer, task.pairs.len(), Sums::of(&task));
            let running = Running { name, units, answer, n_pair, sums, came, began: now, is_wanted: true };
            self.queue.running = Some(running);
            actions.push(WorkerAction::Compute { task: name.0, layer: name.2, body: task });
        }
    }

    /// A row a pair for the task that runs.
    pub(super) fn computed(
        &mut self,
        now: Duration,
        task: u64,
        rows: Option<Vec<f32>>,
        actions: &mut Vec<WorkerAction>,
    ) {
        let Some(running) = self.queue.running.take_if(|r| r.name.0 == task) else { return };
        self.queue.last = now - running.began;
        if !running.is_wanted {
            return;
        }
        let width = self.config.shape.width;
        let rows = rows.filter(|rows| rows.len() == running.n_pair * width as usize);
        let rows = rows.map(|rows| match &running.sums {
            Some(Sums { n_column, weights, places }) => {
                sums(places, weights, &rows, (*n_column, width as usize))
            }
            None => rows,
        });
        let rows = rows.and_then(|rows| Rows::encode(width, &rows, running.answer).ok());
        let Some(rows) = rows else {
            return self.refuse(running.name, FailCode::INTERNAL, Duration::ZERO, actions);
        };
        let us = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let answer = Answer {
            rows,
            queue: self.queue.len().min(255) as u8,
            queued: us(running.began - running.came),
            running: us(now - running.began),
        };
        let (task, epoch, layer) = running.name;
        self.send(
            Frame { task, epoch, layer, body: Body::Result { answer, sum: running.sums.is_some() } },
            actions,
        );
    }

    fn refuse(
        &self,
        (task, epoch, layer): (u64, u32, u16),
        code: FailCode,
        pause: Duration,
        actions: &mut Vec<WorkerAction>,
    ) {
        let retry_after = u32::try_from(pause.as_micros()).unwrap_or(u32::MAX);
        let body = Body::Fail(Fail::new(code, retry_after, ""));
        self.send(Frame { task, epoch, layer, body }, actions);
    }
}
