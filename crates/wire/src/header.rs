//! The header of 32 bytes that every frame begins with.

use crate::error::WireError;
use crate::kind::Kind;
use crate::limits::Limits;

/// First bytes of a frame.
const MAGIC: [u8; 4] = *b"CHSW";
/// Version of the protocol.
pub const VERSION: u8 = 1;
/// Bytes of a header.
pub const HEADER: usize = 32;
/// Offset of the checksum in a header.
const CRC_AT: usize = 12;

/// Flags of a frame.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// The worker sums the rows of a column with the weights of its pairs: one row a column.
    pub sum: bool,
    /// Another fragment follows.
    pub more: bool,
    /// The header has a checksum.
    pub crc: bool,
}

impl Flags {
    const SUM: u16 = 1;
    const MORE: u16 = 2;
    const CRC: u16 = 4;

    fn bits(self) -> u16 {
        u16::from(self.sum) * Self::SUM + u16::from(self.more) * Self::MORE + u16::from(self.crc) * Self::CRC
    }

    fn read(kind: Kind, found: u16) -> Result<Flags, WireError> {
        let flags =
            Flags { sum: found & Self::SUM != 0, more: found & Self::MORE != 0, crc: found & Self::CRC != 0 };
        let sums = matches!(kind, Kind::Task | Kind::Result);
        if flags.bits() != found || flags.sum && !sums || flags.more && !kind.is_split() {
            return Err(WireError::Flags { kind, found });
        }
        Ok(flags)
    }
}

/// The header of a frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the frame.
    pub kind: Kind,
    /// Its flags.
    pub flags: Flags,
    /// Bytes after the header.
    pub length: u32,
    /// The task that it belongs to; 0 where the kind has none. Ids grow and are never used again in a hub's life.
    pub task: u64,
    /// Epoch of the assignment; 0 where the kind has none.
    pub epoch: u32,
    /// Layer, or first layer of a span; 0 where the kind has none.
    pub layer: u16,
    /// Number of the fragment, from 0.
    pub fragment: u16,
}

impl Header {
    /// Reads and checks the header of a whole message, and its checksum; the payload follows at [`HEADER`].
    ///
    /// # Errors
    /// Another magic, version, kind or flags; fields that should be zero; a payload whose length is not the stated one
    /// or beyond the limit; another checksum.
    pub fn read(message: &[u8], limits: &Limits) -> Result<Header, WireError> {
        let Some((head, payload)) = message.split_first_chunk::<HEADER>() else {
            return Err(WireError::Short { found: message.len() });
        };
        let magic: [u8; 4] = array(head, 0);
        if magic != MAGIC {
            return Err(WireError::Magic { found: magic });
        }
        if head[4] != VERSION {
            return Err(WireError::Version { found: head[4], expected: VERSION });
        }
        let kind = Kind::find(head[5]).ok_or(WireError::Kind { found: head[5] })?;
        let header = Header {
            kind,
            flags: Flags::read(kind, u16::from_le_bytes(array(head, 6)))?,
            length: u32::from_le_bytes(array(head, 8)),
            task: u64::from_le_bytes(array(head, 16)),
            epoch: u32::from_le_bytes(array(head, 24)),
            layer: u16::from_le_bytes(array(head, 28)),
            fragment: u16::from_le_bytes(array(head, 30)),
        };
        let (stated, found) = (u64::from(header.length), payload.len() as u64);
        limits.check_frame(kind, stated.max(found))?;
        if stated != found {
            return Err(WireError::Length { kind, expected: stated, found });
        }
        header.check()?;
        let expected = u32::from_le_bytes(array(head, CRC_AT));
        let found = if header.flags.crc { checksum(head, payload) } else { 0 };
        if expected != found {
            return Err(WireError::Checksum { kind, expected, found });
        }
        Ok(header)
    }

    /// Fields that the kind does not use are zero, and those that it uses are not.
    pub(crate) fn check(&self) -> Result<(), WireError> {
        let kind = self.kind;
        let field = |field, found: u64, expected, is_right: bool| {
            if is_right { Ok(()) } else { Err(WireError::Field { kind, field, expected, found }) }
        };
        if kind.has_task() {
            field("task", self.task, "more than 0", self.task > 0)?;
        } else if kind != Kind::Fail {
            field("task", self.task, "0", self.task == 0)?;
        }
        if !kind.has_place() {
            field("epoch", self.epoch.into(), "0", self.epoch == 0)?;
            field("layer", self.layer.into(), "0", self.layer == 0)?;
        }
        if !kind.is_split() {
            field("fragment", self.fragment.into(), "0", self.fragment == 0)?;
        }
        Ok(())
    }

    /// A whole frame: this header, with length and checksum set, and a payload.
    pub(crate) fn frame(mut self, payload: &[u8]) -> Vec<u8> {
        self.length = payload.len() as u32;
        let mut head = [0; HEADER];
        head[..4].copy_from_slice(&MAGIC);
        head[4] = VERSION;
        head[5] = self.kind as u8;
        head[6..8].copy_from_slice(&self.flags.bits().to_le_bytes());
        head[8..12].copy_from_slice(&self.length.to_le_bytes());
        head[16..24].copy_from_slice(&self.task.to_le_bytes());
        head[24..28].copy_from_slice(&self.epoch.to_le_bytes());
        head[28..30].copy_from_slice(&self.layer.to_le_bytes());
        head[30..32].copy_from_slice(&self.fragment.to_le_bytes());
        if self.flags.crc {
            let sum = checksum(&head, payload);
            head[CRC_AT..CRC_AT + 4].copy_from_slice(&sum.to_le_bytes());
        }
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(payload);
        bytes
    }
}

/// CRC-32C of a header, whose own field counts as zero, and a payload.
fn checksum(head: &[u8; HEADER], payload: &[u8]) -> u32 {
    let mut head = *head;
    head[CRC_AT..CRC_AT + 4].fill(0);
    crc32c::crc32c_append(crc32c::crc32c(&head), payload)
}

/// Bytes of a header at a fixed offset.
fn array<const N: usize>(head: &[u8; HEADER], at: usize) -> [u8; N] {
    head[at..at + N].try_into().expect("fields lie within a header")
}
