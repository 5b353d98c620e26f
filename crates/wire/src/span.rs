//! SPAN and TRIM: columns for a span of layers, which keeps the KV cache of its sequences.

use crate::cursor::{self, Cursor, field, zeros};
use crate::error::WireError;
use crate::kind::Kind;
use crate::rows::{Dtype, Rows};

/// Bytes before the list.
const FIXED: usize = 24;

/// The token that a column stands for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Sequence, a number of the hub's.
    pub sequence: u32,
    /// Position in it, from 0.
    pub position: u32,
}

/// Work for a span of layers, whose first one the header names.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Sequence and position of each column.
    pub places: Vec<Place>,
    /// One row a column: hidden states.
    pub rows: Rows,
    /// Number format of the answer, which has as many rows.
    pub answer: Dtype,
    /// Microseconds after which nobody needs the answer; 0 for no limit.
    pub budget: u32,
    /// Columns of the hub's step, which choose the plan.
    pub step_columns: u32,
}

impl Span {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let rows = self.rows.as_bytes();
        let mut bytes = Vec::with_capacity(FIXED + 8 * self.places.len() + rows.len() + 3);
        // As in a task, without pairs and runs.
        for count in [self.rows.n_row(), 0, self.rows.width()] {
            bytes.extend(count.to_le_bytes());
        }
        bytes.extend([self.rows.dtype() as u8, self.answer as u8, 0, 0]);
        bytes.extend(self.budget.to_le_bytes());
        bytes.extend(self.step_columns.to_le_bytes());
        let places = self.places.iter().flat_map(|place| [place.sequence, place.position]);
        bytes.extend(places.flat_map(u32::to_le_bytes));
        bytes.extend(rows);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Span, WireError> {
        let kind = Kind::Span;
        let mut cursor = Cursor::new(kind, payload, FIXED)?;
        let (n_col, n_pair, width) = (cursor.u32(), cursor.u32(), cursor.u32());
        let dtype = Dtype::read(kind, "dtype in", cursor.u8())?;
        let answer = Dtype::read(kind, "dtype out", cursor.u8())?;
        let n_run = cursor.u16();
        let (budget, step_columns) = (cursor.u32(), cursor.u32());
        field(kind, "columns", "1 to 65536", n_col.into(), (1..=1 << 16).contains(&n_col))?;
        field(kind, "width", "more than 0", width.into(), width > 0)?;
        field(kind, "pairs", "0", n_pair.into(), n_pair == 0)?;
        field(kind, "runs", "0", n_run.into(), n_run == 0)?;
        let is_right = step_columns >= n_col;
        field(kind, "columns of the step", "at least those of the task", step_columns.into(), is_right)?;
        let n_row_byte = dtype.row_bytes(width).saturating_mul(n_col.into());
        let n_padded = n_row_byte.checked_next_multiple_of(4).unwrap_or(u64::MAX);
        let n_list = 8 * u64::from(n_col);
        cursor::exactly(kind, n_padded.saturating_add(FIXED as u64 + n_list), payload)?;

        let places = (0..n_col).map(|_| Place { sequence: cursor.u32(), position: cursor.u32() }).collect();
        let rows = Rows::read(kind, dtype, width, n_col, cursor.bytes(n_row_byte as usize))?;
        zeros(kind, cursor.bytes((n_padded - n_row_byte) as usize))?;
        Ok(Span { places, rows, answer, budget, step_columns })
    }
}

/// Positions that a span forgets, such as those of rejected drafts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Sequence.
    pub sequence: u32,
    /// First position to forget.
    pub from: u32,
}

impl Trim {
    pub(crate) fn encode(self) -> Vec<u8> {
        [self.sequence, self.from].into_iter().flat_map(u32::to_le_bytes).collect()
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Trim, WireError> {
        cursor::exactly(Kind::Trim, 8, payload)?;
        let mut cursor = Cursor::new(Kind::Trim, payload, 8)?;
        Ok(Trim { sequence: cursor.u32(), from: cursor.u32() })
    }
}
