//! RESULT, SPAN_RESULT and FAIL: answers to tasks.

use crate::cursor::{self, Cursor, field, zeros};
use crate::error::WireError;
use crate::kind::Kind;
use crate::limits::MAX_TEXT;
use crate::rows::{Dtype, Rows};

/// Bytes before the rows.
const FIXED: usize = 20;

/// Rows for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// One row a pair, in order of pairs; one a column with SUM and for a span.
    pub rows: Rows,
    /// Tasks that wait at the worker.
    pub queue: u8,
    /// Microseconds from the task's arrival to its start.
    pub queued: u32,
    /// Microseconds that it ran.
    pub running: u32,
}

impl Answer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let rows = self.rows.as_bytes();
        let mut bytes = Vec::with_capacity(FIXED + rows.len() + 3);
        bytes.extend(self.rows.n_row().to_le_bytes());
        bytes.extend(self.rows.width().to_le_bytes());
        bytes.extend([self.rows.dtype() as u8, self.queue, 0, 0]);
        bytes.extend(self.queued.to_le_bytes());
        bytes.extend(self.running.to_le_bytes());
        bytes.extend(rows);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    pub(crate) fn decode(kind: Kind, payload: &[u8]) -> Result<Answer, WireError> {
        let mut cursor = Cursor::new(kind, payload, FIXED)?;
        let (n_row, width) = (cursor.u32(), cursor.u32());
        let dtype = Dtype::read(kind, "dtype", cursor.u8())?;
        let queue = cursor.u8();
        let reserved = cursor.u16();
        let (queued, running) = (cursor.u32(), cursor.u32());
        field(kind, "rows", "more than 0", n_row.into(), n_row > 0)?;
        field(kind, "width", "more than 0", width.into(), width > 0)?;
        field(kind, "reserved field", "0", reserved.into(), reserved == 0)?;
        let n_row_byte = dtype.row_bytes(width).saturating_mul(n_row.into());
        let n_padded = n_row_byte.checked_next_multiple_of(4).unwrap_or(u64::MAX);
        cursor::exactly(kind, n_padded.saturating_add(FIXED as u64), payload)?;
        let rows = Rows::read(kind, dtype, width, n_row, cursor.bytes(n_row_byte as usize))?;
        zeros(kind, cursor.bytes((n_padded - n_row_byte) as usize))?;
        Ok(Answer { rows, queue, queued, running })
    }
}

/// Cause of a [`Fail`]. Peers may send codes of later versions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct FailCode(pub u16);

impl FailCode {
    /// A frame that the protocol does not allow.
    pub const BAD_FRAME: FailCode = FailCode(1);
    /// The worker does not hold the unit.
    pub const NOT_HELD: FailCode = FailCode(2);
    /// Another epoch.
    pub const EPOCH: FailCode = FailCode(3);
    /// The queue is full.
    pub const BUSY: FailCode = FailCode(4);
    /// The budget ran out before the work began.
    pub const LATE: FailCode = FailCode(5);
    /// Memory of the worker or its device is exhausted.
    pub const MEMORY: FailCode = FailCode(6);
    /// The device is lost.
    pub const DEVICE: FailCode = FailCode(7);
    /// Weights have another digest, or cannot be fetched.
    pub const WEIGHTS: FailCode = FailCode(8);
    /// Another fault of the worker.
    pub const INTERNAL: FailCode = FailCode(9);
    /// The step has more columns than the worker has a plan for.
    pub const COLUMNS: FailCode = FailCode(10);
}

/// No rows for a task, or a complaint about a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fail {
    /// Cause.
    pub code: FailCode,
    /// Microseconds after which another try makes sense; 0 if none does.
    pub retry_after: u32,
    /// The cause in words, at most 1024 bytes.
    pub text: String,
}

impl Fail {
    /// A failure with a text, which is cut to 1024 bytes at the end of a character.
    pub fn new(code: FailCode, retry_after: u32, text: &str) -> Fail {
        let end = (0..=text.len().min(MAX_TEXT)).rev().find(|at| text.is_char_boundary(*at));
        Fail { code, retry_after, text: text[..end.unwrap_or(0)].to_owned() }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.text.len());
        bytes.extend(self.code.0.to_le_bytes());
        bytes.extend((self.text.len() as u16).to_le_bytes());
        bytes.extend(self.retry_after.to_le_bytes());
        bytes.extend(self.text.as_bytes());
        bytes
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Fail, WireError> {
        let kind = Kind::Fail;
        let mut cursor = Cursor::new(kind, payload, 8)?;
        let (code, n_text, retry_after) = (FailCode(cursor.u16()), cursor.u16(), cursor.u32());
        field(kind, "code", "more than 0", code.0.into(), code.0 > 0)?;
        let is_right = usize::from(n_text) <= MAX_TEXT;
        field(kind, "length of the text", "at most 1024", n_text.into(), is_right)?;
        cursor::exactly(kind, 8 + u64::from(n_text), payload)?;
        let text = std::str::from_utf8(cursor.bytes(n_text.into()));
        let text = text.map_err(|e| WireError::Utf8 { kind, at: e.valid_up_to() })?.to_owned();
        Ok(Fail { code, retry_after, text })
    }
}
