//! Little-endian fields of a payload, one after another.

use crate::error::WireError;
use crate::kind::Kind;

/// Takes fields from the front of a payload whose length has been compared with its counts.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Begins at the first byte.
    ///
    /// # Errors
    /// Fewer bytes than the fixed fields of the kind take.
    pub(crate) fn new(kind: Kind, payload: &'a [u8], n_fixed: usize) -> Result<Cursor<'a>, WireError> {
        if payload.len() < n_fixed {
            return Err(length(kind, n_fixed as u64, payload));
        }
        Ok(Cursor { rest: payload })
    }

    /// The next bytes.
    pub(crate) fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (bytes, rest) =
            self.rest.split_at_checked(n).expect("lengths are compared before fields are read");
        self.rest = rest;
        bytes
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.bytes(N).try_into().expect("as many bytes as were asked for")
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.array())
    }
}

/// The error for a payload of another length.
pub(crate) fn length(kind: Kind, expected: u64, payload: &[u8]) -> WireError {
    WireError::Length { kind, expected, found: payload.len() as u64 }
}

/// An error unless a payload has the expected length.
pub(crate) fn exactly(kind: Kind, expected: u64, payload: &[u8]) -> Result<(), WireError> {
    if payload.len() as u64 == expected { Ok(()) } else { Err(length(kind, expected, payload)) }
}

/// An error unless a field is right.
pub(crate) fn field(
    kind: Kind,
    field: &'static str,
    expected: &'static str,
    found: u64,
    is_right: bool,
) -> Result<(), WireError> {
    if is_right { Ok(()) } else { Err(WireError::Field { kind, field, expected, found }) }
}

/// Padding.
pub(crate) fn zeros(kind: Kind, bytes: &[u8]) -> Result<(), WireError> {
    match bytes.iter().find(|b| **b != 0) {
        Some(found) => field(kind, "padding", "0", (*found).into(), false),
        None => Ok(()),
    }
}
