//! Tasks in flight: at workers, or at the hub itself.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chaski_wire::{Body, Dtype, Frame, Pair, Rows, Run, Task};

use super::CallPair;
use crate::sum;
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
    /// Pairs, part by part; those of a part in ascending order.
    pub(super) pairs: Vec<CallPair>,
    /// Their weights, if workers sum: answers have one row a column.
    pub(super) weights: Option<Vec<f32>>,
}

impl CallData {
    /// `x` has finite values, of a width, and travels in a format. All tasks of a call have the same one.
    pub(super) fn new(
        (layer, step_columns): (u16, u32),
        x: Arc<[f32]>,
        (pairs, weights): (Vec<CallPair>, Option<Vec<f32>>),
        (width, input): (u32, Dtype),
    ) -> CallData {
        let rows = Rows::encode(width, &x, input).expect("inputs of calls are finite rows");
        CallData { layer, step_columns, x, rows, pairs, weights }
    }

    /// Rows of the answer to the pairs at some ranges.
    pub(super) fn n_row(&self, ranges: impl Iterator<Item = Range<usize>>) -> usize {
        match self.weights {
            Some(_) => sum::columns(pairs_of(self, ranges).iter().map(|p| p.column)).len(),
            None => ranges.map(|range| range.len()).sum(),
        }
    }

    /// Rows of the answer from those of its pairs, at some ranges.
    pub(super) fn answer_of(&self, ranges: &[Range<usize>], rows: Vec<f32>) -> Vec<f32> {
        let Some(weights) = self.weights_at(ranges.iter().cloned()) else { return rows };
        let pairs = pairs_of(self, ranges.iter().cloned());
        let columns = sum::columns(pairs.iter().map(|p| p.column));
        let place = |p: &CallPair| (columns.binary_search(&p.column).expect("its column") as u16, p.slot);
        let places: Vec<(u16, u16)> = pairs.iter().map(place).collect();
        sum::sums(&places, &weights, &rows, (columns.len(), rows.len() / pairs.len().max(1)))
    }

    /// Of each row of the answer to a part, at a range of pairs, the pair that it belongs to, with sums the one of the
    /// greatest weight.
    pub(super) fn leads(&self, range: &Range<usize>) -> Vec<CallPair> {
        let pairs = &self.pairs[range.clone()];
        match &self.weights {
            Some(weights) => {
                sum::leads(pairs, &weights[range.clone()]).into_iter().map(|i| pairs[i]).collect()
            }
            None => pairs.to_vec(),
        }
    }

    /// Ranges of the pairs of some rows of the answer to a part.
    pub(super) fn ranges_of(&self, part: &Range<usize>, rows: Range<usize>) -> Vec<Range<usize>> {
        if self.weights.is_none() {
            return std::iter::once(part.start + rows.start..part.start + rows.end).collect();
        }
        let columns = sum::columns(self.pairs[part.clone()].iter().map(|p| p.column));
        let is_of = |i: &usize| columns[rows.clone()].contains(&self.pairs[*i].column);
        part.clone().filter(is_of).map(|i| i..i + 1).collect()
    }

    /// Weights of the pairs at some ranges, relative to the greatest of each column.
    fn weights_at(&self, ranges: impl Iterator<Item = Range<usize>> + Clone) -> Option<Vec<f32>> {
        let all = self.weights.as_ref()?;
        let weights: Vec<f32> = ranges.clone().flat_map(|range| all[range].iter().copied()).collect();
        Some(sum::relative(&pairs_of(self, ranges), &weights))
    }

    /// Writes the answer to a part, at a range of pairs, into rows of all pairs: a sum into the row of its greatest
    /// weight.
    pub(super) fn put(&self, range: &Range<usize>, answer: &[f32], rows: &mut [f32], width: usize) {
        let rows = &mut rows[range.start * width..range.end * width];
        let Some(weights) = &self.weights else { return rows.copy_from_slice(answer) };
        rows.fill(0.0);
        let leads = sum::leads(&self.pairs[range.clone()], &weights[range.clone()]);
        for (lead, row) in leads.into_iter().zip(answer.chunks_exact(width)) {
            rows[lead * width..][..width].copy_from_slice(row);
        }
    }
}

/// Answers to the same pairs of a call, which are compared.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) call: CallId,
    pub(super) data: Arc<CallData>,
    pub(super) pairs: Vec<Range<usize>>,
    pub(super) unit: Unit,
    /// Other units of the pairs.
    pub(super) others: Vec<Unit>,
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
    /// Its rows of the answer.
    pub(super) n_row: usize,
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
    /// Rows of the answer.
    pub(super) n_row: usize,
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
        let start: usize = self.parts[..part].iter().map(|p| p.n_row).sum();
        start..start + self.parts[part].n_row
    }

    pub(super) fn pairs(&self) -> Vec<CallPair> {
        pairs_of(&self.data, self.ranges())
    }

    /// Ranges of its pairs.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().map(|p| p.pairs.clone())
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

/// The frame of a task: its pairs, at some ranges of the call, and the columns that they use.
pub(super) fn frame(
    task: u64,
    epoch: u32,
    data: &CallData,
    ranges: impl Iterator<Item = Range<usize>> + Clone,
    terms: Terms,
) -> Frame {
    let pairs = pairs_of(data, ranges.clone());
    let columns = sum::columns(pairs.iter().map(|p| p.column));
    let place = |c: u16| columns.binary_search(&c).expect("the column of a pair is in the list") as u16;
    let runs = pairs.chunk_by(|a, b| a.expert == b.expert);
    let body = Task {
        runs: runs.map(|run| Run { expert: run[0].expert, n: run.len() as u16 }).collect(),
        pairs: pairs.iter().map(|p| Pair { column: place(p.column), slot: p.slot }).collect(),
        weights: data.weights_at(ranges),
        rows: data.rows.select(&columns),
        answer: terms.output,
        budget: u32::try_from(terms.budget.as_micros()).unwrap_or(u32::MAX),
        step_columns: data.step_columns,
    };
    Frame { task, epoch, layer: data.layer, body: Body::Task(body) }
}
