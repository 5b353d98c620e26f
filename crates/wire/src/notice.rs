//! CANCEL, STATE, PING and PONG: short frames beside the tasks.

use crate::cursor::{self, Cursor, field};
use crate::error::WireError;
use crate::kind::Kind;
use crate::limits::{MAX_CANCEL, check};

/// State of a worker.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// False for a tab in the background, whose timers are throttled.
    pub visible: bool,
    /// The worker runs slower than it could, such as on a battery.
    pub throttled: bool,
    /// Tasks that wait.
    pub queue: u16,
    /// Free memory, in MiB.
    pub free_mib: u32,
}

impl State {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = vec![self.visible.into(), self.throttled.into()];
        bytes.extend(self.queue.to_le_bytes());
        bytes.extend(self.free_mib.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<State, WireError> {
        let kind = Kind::State;
        cursor::exactly(kind, 8, payload)?;
        let mut cursor = Cursor::new(kind, payload, 8)?;
        let (visible, throttled) = (cursor.u8(), cursor.u8());
        field(kind, "visible", "0 or 1", visible.into(), visible < 2)?;
        field(kind, "throttled", "0 or 1", throttled.into(), throttled < 2)?;
        let (queue, free_mib) = (cursor.u16(), cursor.u32());
        Ok(State { visible: visible == 1, throttled: throttled == 1, queue, free_mib })
    }
}

/// Reads the clock of a PING or PONG.
pub(crate) fn decode_clock(kind: Kind, payload: &[u8]) -> Result<u64, WireError> {
    cursor::exactly(kind, 8, payload)?;
    Ok(Cursor::new(kind, payload, 8)?.u64())
}

/// Reads the ids of a CANCEL: at least one, in ascending order.
pub(crate) fn decode_cancel(payload: &[u8]) -> Result<Vec<u64>, WireError> {
    let kind = Kind::Cancel;
    let n = payload.len() as u64 / 8;
    check(kind, "tasks", MAX_CANCEL, n)?;
    cursor::exactly(kind, n.max(1) * 8, payload)?;
    let mut cursor = Cursor::new(kind, payload, 8)?;
    let mut last = 0;
    let mut ids = Vec::with_capacity(n as usize);
    for _ in 0..n {
        let id = cursor.u64();
        field(kind, "task", "more than the one before it", id, id > last)?;
        last = id;
        ids.push(id);
    }
    Ok(ids)
}
