//! Messages from fragments, which may come between frames of other tasks.

use crate::error::WireError;
use crate::frame::Frame;
use crate::header::{HEADER, Header};
use crate::limits::Limits;
use crate::limits::check;

/// A message whose fragments are still coming.
#[derive(Debug)]
struct Partial {
    /// Header of the last fragment.
    header: Header,
    payload: Vec<u8>,
}

impl Partial {
    /// The fragment that comes next belongs to the same message.
    fn is_next(&self, header: &Header) -> bool {
        let last = &self.header;
        last.fragment.checked_add(1) == Some(header.fragment)
            && (last.epoch, last.layer, last.flags.sum) == (header.epoch, header.layer, header.flags.sum)
    }
}

/// Reads the frames of a connection, and puts fragments together.
///
/// Memory is bounded by [`Limits::pending`] and [`Limits::n_pending`]: fragments are kept as they come, whatever the
/// first one promises.
#[derive(Debug)]
pub struct Assembler {
    limits: Limits,
    partials: Vec<Partial>,
}

impl Assembler {
    /// For a new connection.
    pub fn new(limits: Limits) -> Assembler {
        Assembler { limits, partials: Vec::new() }
    }

    /// Limits from now on, such as those of WELCOME.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Takes a message of the socket. `None` means that fragments are missing.
    ///
    /// # Errors
    /// Everything that [`WireError`] lists. A wrong fragment drops the fragments before it.
    pub fn push(&mut self, message: &[u8]) -> Result<Option<Frame>, WireError> {
        let header = Header::read(message, &self.limits)?;
        let payload = &message[HEADER..];
        let (kind, task) = (header.kind, header.task);
        let found = self.partials.iter().position(|p| (p.header.kind, p.header.task) == (kind, task));
        let partial = found.map(|i| self.partials.swap_remove(i));
        if partial.is_none() && header.fragment == 0 && !header.flags.more {
            return Frame::of(&header, payload).map(Some);
        }
        let partial = match partial {
            Some(partial) if partial.is_next(&header) => partial,
            None if header.fragment == 0 => Partial { header, payload: Vec::new() },
            other => {
                let expected = other.map_or(0, |p| p.header.fragment.saturating_add(1));
                return Err(WireError::Fragment { kind, task, expected, found: header.fragment });
            }
        };
        self.grow(partial, header, payload)
    }

    /// Forgets the fragments of a task, such as one that was cancelled.
    pub fn forget(&mut self, task: u64) {
        self.partials.retain(|partial| partial.header.task != task);
    }

    /// Bytes of all fragments of unfinished messages.
    pub fn n_pending_byte(&self) -> usize {
        self.partials.iter().map(|partial| partial.payload.len()).sum()
    }

    /// Adds a fragment, whose message is finished if nothing follows.
    fn grow(
        &mut self,
        mut partial: Partial,
        header: Header,
        payload: &[u8],
    ) -> Result<Option<Frame>, WireError> {
        let (kind, limits) = (header.kind, &self.limits);
        if payload.is_empty() {
            return Err(WireError::Length { kind, expected: 1, found: 0 });
        }
        let n_byte = (partial.payload.len() + payload.len()) as u64;
        limits.check_message(kind, n_byte)?;
        check(
            kind,
            "bytes of unfinished messages",
            limits.pending.into(),
            n_byte + self.n_pending_byte() as u64,
        )?;
        partial.payload.extend_from_slice(payload);
        partial.header = header;
        if !header.flags.more {
            return Frame::of(&header, &partial.payload).map(Some);
        }
        check(kind, "unfinished messages", limits.n_pending.into(), self.partials.len() as u64 + 1)?;
        self.partials.push(partial);
        Ok(None)
    }
}
