//! Limits that hub and worker agree on.

use serde::{Deserialize, Serialize};

use crate::cursor::field;
use crate::error::WireError;
use crate::kind::Kind;

/// Longest JSON message but ASSIGN, in bytes.
pub const MAX_CONTROL: u32 = 64 << 10;
/// Longest ASSIGN, in bytes.
pub const MAX_ASSIGN: u32 = 1 << 20;
/// Deepest nesting of a JSON message.
pub const MAX_DEPTH: usize = 8;
/// Most task ids in a CANCEL.
pub const MAX_CANCEL: u64 = 4096;
/// Longest text of a FAIL, in bytes.
pub const MAX_TEXT: usize = 1024;

/// Limits of a connection, in bytes where nothing else is said. WELCOME states them; before it the defaults hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Payload of one frame.
    pub frame: u32,
    /// Payload of a message, in one frame or in fragments.
    pub message: u32,
    /// All fragments of unfinished messages of a connection.
    pub pending: u32,
    /// Number of unfinished messages of a connection.
    pub n_pending: u16,
    /// Payload of a fragment that this side sends, so that a frame of another task passes between two of them.
    pub fragment: u32,
    /// Tasks in flight at a worker.
    pub n_task: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            frame: 4 << 20,
            message: 8 << 20,
            pending: 8 << 20,
            n_pending: 8,
            fragment: 256 << 10,
            n_task: 4,
        }
    }
}

impl Limits {
    /// The stricter of two limits, one by one: neither side exceeds what the other takes.
    pub fn min(self, other: Limits) -> Limits {
        Limits {
            frame: self.frame.min(other.frame),
            message: self.message.min(other.message),
            pending: self.pending.min(other.pending),
            n_pending: self.n_pending.min(other.n_pending),
            fragment: self.fragment.min(other.fragment),
            n_task: self.n_task.min(other.n_task),
        }
    }

    /// Limits below which a connection would mostly carry headers are a mistake, or mean harm.
    pub(crate) fn check(&self, kind: Kind) -> Result<(), WireError> {
        let fields = [
            ("limit of a frame", self.frame, 64 << 10),
            ("limit of a message", self.message, 64 << 10),
            ("limit of unfinished messages", self.pending, 64 << 10),
            ("number of unfinished messages", self.n_pending.into(), 1),
            ("length of a fragment", self.fragment, 4 << 10),
            ("number of tasks", self.n_task.into(), 1),
        ];
        for (name, found, least) in fields {
            let expected = "at least 64 KiB, 4 KiB for a fragment, 1 for a number";
            field(kind, name, expected, found.into(), found >= least)?;
        }
        Ok(())
    }

    /// Longest payload of one frame of a kind.
    fn frame_of(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Assign => MAX_ASSIGN,
            kind if kind.is_control() => MAX_CONTROL,
            _ => self.frame.min(self.message),
        }
    }

    /// Compares the length of a frame's payload with its limit.
    pub(crate) fn check_frame(&self, kind: Kind, found: u64) -> Result<(), WireError> {
        check(kind, "bytes in a frame", self.frame_of(kind).into(), found)
    }

    /// Compares the length of a message's payload, in one frame or in fragments, with its limit.
    pub(crate) fn check_message(&self, kind: Kind, found: u64) -> Result<(), WireError> {
        let limit = if kind.is_control() { self.frame_of(kind) } else { self.message };
        check(kind, "bytes in a message", limit.into(), found)
    }
}

/// An error if there are more than `limit` of something.
pub(crate) fn check(kind: Kind, of: &'static str, limit: u64, found: u64) -> Result<(), WireError> {
    if found > limit { Err(WireError::Limit { kind, of, limit, found }) } else { Ok(()) }
}
