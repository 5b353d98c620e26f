//! Tasks in flight: at workers, or at the hub itself.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chaski_wire::{Body, Dtype, Frame, Pair, Rows, Run, Task};

use super::CallPair;
use crate::unit::{CallId, Class, HostId, PeerId, Unit, WorkerId};
use crate::verify::Kept;

/// The maker of an answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// A worker.
    Worker { peer: PeerId, worker: WorkerId, host: HostId },
    /// The hub.
    Hub,
}

impl By {
    pub(super) fn peer(self) -> Option<PeerId> {
        match self {
            By::Worker { peer, .. } => Some(peer),
            By::Hub => None,
        }
    }

    pub(super) fn host(self) -> Option<HostId> {
        match self {
            By::Worker { host, .. } => Some(host),
            By::Hub => None,
        }
    }
}

/// Inputs and pairs of a call, shared by its tasks.
#[derive(Debug)]
pub(super) struct CallData {
    pub(super) layer: u16,
    pub(super) step_columns: u32,
    /// `[n_column, width]`.
    pub(super) x: Arc<[f32]>,
    /// The same as they travel.
    rows: Rows,
    pub(super) pairs: Vec<CallPair>,
}

impl CallData {
    /// `x` has finite values, of a width, and travels in a format. All tasks of a call have the same one.
    pub(super) fn new(
        (layer, step_columns): (u16, u32),
        x: Arc<[f32]>,
        pairs: Vec<CallPair>,
        (width, input): (u32, Dtype),
    ) -> CallData {
        let rows = Rows::encode(width, &x, input).expect("inputs of calls are finite rows");
        CallData { layer, step_columns, x, rows, pairs }
    }
}

/// Answers to the same pairs of a call, which are compared.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) call: CallId,
    pub(super) data: Arc<CallData>,
    pub(super) pairs: Range<usize>,
    pub(super) unit: Unit,
    /// Class that served then: answers of another one say nothing.
    pub(super) class: Option<Class>,
    pub(super) claims: Vec<(By, Kept)>,
}

/// Purpose of a task.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Its answer is part of a call. `late` says that it is a hedge for another one that is late.
    Serve { late: bool },
    /// Its answer tells whether others are right.
    Check(Case),
    /// Its answer is known, and tells whether the worker is well.
    Canary(Kept),
}

/// A part of a call within a task.
#[derive(Debug)]
pub(super) struct FlightPart {
    /// Index of the part in its call.
    pub(super) part: u16,
    /// Pairs of the call.
    pub(super) pairs: Range<usize>,
    /// The answer that was used, if it was another one.
    pub(super) used: Option<(By, Kept)>,
}

/// A task in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) by: By,
    pub(super) call: CallId,
    pub(super) data: Arc<CallData>,
    /// In ascending order; their pairs, one after another, are those of the task.
    pub(super) parts: Vec<FlightPart>,
    pub(super) purpose: Purpose,
    pub(super) epoch: u32,
    pub(super) sent: Duration,
    /// Predicted seconds until the answer.
    pub(super) predicted: f64,
    pub(super) n_pair: usize,
    /// Bytes of rows, both ways.
    pub(super) n_byte: u64,
    /// When its answer ceased to be wanted.
    pub(super) settled: Option<Duration>,
    /// A hedge was sent for it.
    pub(super) hedged: bool,
}

impl Flight {
    /// Rows of the answer for a part, by their position in the answer.
    pub(super) fn rows_of(&self, part: usize) -> Range<usize> {
        let start: usize = self.parts[..part].iter().map(|p| p.pairs.len()).sum();
        start..start + self.parts[part].pairs.len()
    }

    pub(super) fn pairs(&self) -> Vec<CallPair> {
        pairs_of(&self.data, self.parts.iter().map(|p| p.pairs.clone()))
    }
}

/// Pairs at some ranges of a call.
pub(super) fn pairs_of(data: &CallData, ranges: impl Iterator<Item = Range<usize>>) -> Vec<CallPair> {
    ranges.flat_map(|range| data.pairs[range].iter().copied()).collect()
}

/// Number formats and time of a task.
#[derive(Copy, Clone, Debug)]
pub(super) struct Terms {
    pub(super) output: Dtype,
    pub(super) budget: Duration,
}

/// The frame of a task: its pairs, and the columns that they use.
pub(super) fn frame(task: u64, epoch: u32, data: &CallData, pairs: &[CallPair], terms: Terms) -> Frame {
    let mut columns: Vec<u16> = pairs.iter().map(|p| p.column).collect();
    columns.sort_unstable();
    columns.dedup();
    let place = |c: u16| columns.binary_search(&c).expect("the column of a pair is in the list") as u16;
    let runs = pairs.chunk_by(|a, b| a.expert == b.expert);
    let body = Task {
        runs: runs.map(|run| Run { expert: run[0].expert, n: run.len() as u16 }).collect(),
        pairs: pairs.iter().map(|p| Pair { column: place(p.column), slot: p.slot }).collect(),
        weights: None,
        rows: data.rows.select(&columns),
        answer: terms.output,
        budget: u32::try_from(terms.budget.as_micros()).unwrap_or(u32::MAX),
        step_columns: data.step_columns,
    };
    Frame { task, epoch, layer: data.layer, body: Body::Task(body) }
}
