//! TASK: columns for experts of one layer.

use crate::cursor::{self, Cursor, field, zeros};
use crate::error::WireError;
use crate::kind::Kind;
use crate::rows::{Dtype, Rows};

/// Bytes before the lists.
const FIXED: usize = 24;

/// Pairs of one expert, next to each other in [`Task::pairs`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Expert of the layer.
    pub expert: u16,
    /// Number of its pairs, at least 1.
    pub n: u16,
}

/// A column that an expert multiplies, and the slot of its product among the experts of that column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Index of a row of [`Task::rows`].
    pub column: u16,
    /// Slot of the product.
    pub slot: u16,
}

/// Work for experts of one layer: for each pair the product of an expert and a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Experts in ascending order.
    pub runs: Vec<Run>,
    /// Pairs, run by run; the columns of a run ascend.
    pub pairs: Vec<Pair>,
    /// With the flag SUM a weight for each pair: the answer has one row a column, the sum of its weighted products in
    /// order of slots.
    pub weights: Option<Vec<f32>>,
    /// One row a column.
    pub rows: Rows,
    /// Number format of the answer.
    pub answer: Dtype,
    /// Microseconds after which nobody needs the answer; 0 for no limit.
    pub budget: u32,
    /// Columns of the hub's step. They choose the plan, and with it the last bits of the products.
    pub step_columns: u32,
}

impl Task {
    /// Rows of the answer: one a pair, or with weights one a column.
    pub fn n_answer(&self) -> u32 {
        if self.weights.is_some() { self.rows.n_row() } else { self.pairs.len() as u32 }
    }

    /// Each pair with its expert.
    pub fn with_experts(&self) -> impl Iterator<Item = (u16, Pair)> + '_ {
        let experts = self.runs.iter().flat_map(|run| std::iter::repeat_n(run.expert, run.n.into()));
        experts.zip(self.pairs.iter().copied())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let n_weight = self.weights.as_ref().map_or(0, Vec::len);
        let rows = self.rows.as_bytes();
        let n_list = 4 * (self.runs.len() + self.pairs.len() + n_weight);
        let mut bytes = Vec::with_capacity(FIXED + n_list + rows.len() + 3);
        for count in [self.rows.n_row(), self.pairs.len() as u32, self.rows.width()] {
            bytes.extend(count.to_le_bytes());
        }
        bytes.extend([self.rows.dtype() as u8, self.answer as u8]);
        bytes.extend((self.runs.len() as u16).to_le_bytes());
        bytes.extend(self.budget.to_le_bytes());
        bytes.extend(self.step_columns.to_le_bytes());
        let runs = self.runs.iter().flat_map(|run| [run.expert, run.n]);
        let pairs = self.pairs.iter().flat_map(|pair| [pair.column, pair.slot]);
        bytes.extend(runs.chain(pairs).flat_map(u16::to_le_bytes));
        bytes.extend(self.weights.iter().flatten().flat_map(|w| w.to_le_bytes()));
        bytes.extend(rows);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    pub(crate) fn decode(payload: &[u8], sum: bool) -> Result<Task, WireError> {
        let kind = Kind::Task;
        let mut cursor = Cursor::new(kind, payload, FIXED)?;
        let (n_col, n_pair, width) = (cursor.u32(), cursor.u32(), cursor.u32());
        let dtype = Dtype::read(kind, "dtype in", cursor.u8())?;
        let answer = Dtype::read(kind, "dtype out", cursor.u8())?;
        let n_run = cursor.u16();
        let (budget, step_columns) = (cursor.u32(), cursor.u32());
        field(kind, "columns", "1 to 65536", n_col.into(), (1..=1 << 16).contains(&n_col))?;
        field(kind, "width", "more than 0", width.into(), width > 0)?;
        field(kind, "pairs", "more than 0", n_pair.into(), n_pair > 0)?;
        field(kind, "runs", "more than 0", n_run.into(), n_run > 0)?;
        let is_right = step_columns >= n_col;
        field(kind, "columns of the step", "at least those of the task", step_columns.into(), is_right)?;
        let n_list = 4 * (u64::from(n_run) + u64::from(n_pair) * if sum { 2 } else { 1 });
        let n_row_byte = dtype.row_bytes(width).saturating_mul(n_col.into());
        let n_padded = n_row_byte.checked_next_multiple_of(4).unwrap_or(u64::MAX);
        cursor::exactly(kind, n_padded.saturating_add(FIXED as u64 + n_list), payload)?;

        let runs = read_runs(&mut cursor, n_run, n_pair)?;
        let pairs = read_pairs(&mut cursor, &runs, n_col)?;
        let weights = if sum { Some(read_weights(&mut cursor, n_pair)?) } else { None };
        let rows = Rows::read(kind, dtype, width, n_col, cursor.bytes(n_row_byte as usize))?;
        zeros(kind, cursor.bytes((n_padded - n_row_byte) as usize))?;
        Ok(Task { runs, pairs, weights, rows, answer, budget, step_columns })
    }
}

/// Runs of experts that ascend, with as many pairs as there are.
fn read_runs(cursor: &mut Cursor<'_>, n_run: u16, n_pair: u32) -> Result<Vec<Run>, WireError> {
    let kind = Kind::Task;
    let mut runs: Vec<Run> = Vec::with_capacity(n_run.into());
    let mut n_found = 0u64;
    for _ in 0..n_run {
        let run = Run { expert: cursor.u16(), n: cursor.u16() };
        let is_right = runs.last().is_none_or(|last| last.expert < run.expert);
        field(kind, "expert", "more than the one before it", run.expert.into(), is_right)?;
        field(kind, "pairs of an expert", "more than 0", run.n.into(), run.n > 0)?;
        n_found += u64::from(run.n);
        runs.push(run);
    }
    field(kind, "sum of the runs", "the number of pairs", n_found, n_found == u64::from(n_pair))?;
    Ok(runs)
}

/// Pairs whose columns exist and ascend within a run.
fn read_pairs(cursor: &mut Cursor<'_>, runs: &[Run], n_col: u32) -> Result<Vec<Pair>, WireError> {
    let kind = Kind::Task;
    let mut pairs = Vec::with_capacity(runs.iter().map(|run| usize::from(run.n)).sum());
    for run in runs {
        let mut last = None;
        for _ in 0..run.n {
            let pair = Pair { column: cursor.u16(), slot: cursor.u16() };
            let column = pair.column.into();
            field(kind, "column", "less than the number of columns", column, column < n_col.into())?;
            let is_right = last.is_none_or(|last| last < pair.column);
            field(kind, "column", "more than the one before it", column, is_right)?;
            last = Some(pair.column);
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

/// Finite weights.
fn read_weights(cursor: &mut Cursor<'_>, n_pair: u32) -> Result<Vec<f32>, WireError> {
    let weights: Vec<f32> = (0..n_pair).map(|_| cursor.f32()).collect();
    match weights.iter().position(|w| !w.is_finite()) {
        Some(at) => {
            let found = weights[at].to_bits().into();
            Err(WireError::Field {
                kind: Kind::Task,
                field: "bits of a weight",
                expected: "a finite number",
                found,
            })
        }
        None => Ok(weights),
    }
}
