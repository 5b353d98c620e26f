//! Errors of frames, control messages and tokens.

use crate::kind::Kind;

/// A frame, or a message in it, that is not what the protocol allows.
///
/// A peer that gets one answers with [`crate::Fail`] and [`crate::FailCode::BAD_FRAME`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Fewer bytes than a header has.
    #[error("a frame of {found} bytes, expected a header of 32")]
    Short {
        /// Bytes of the message.
        found: usize,
    },
    /// The first four bytes.
    #[error("a frame begins with {found:02x?}, expected \"CHSW\"")]
    Magic {
        /// Bytes found.
        found: [u8; 4],
    },
    /// Another version of the protocol.
    #[error("a frame of version {found}, expected version {expected}")]
    Version {
        /// Version found.
        found: u8,
        /// Version of this crate.
        expected: u8,
    },
    /// A kind of frame that the protocol does not have.
    #[error("kind of frame {found:#04x} is unknown")]
    Kind {
        /// Kind found.
        found: u8,
    },
    /// Flags that the protocol does not have, or that this kind may not have.
    #[error("{kind:?}: flags {found:#06x} are not allowed")]
    Flags {
        /// Kind of the frame.
        kind: Kind,
        /// Flags found.
        found: u16,
    },
    /// A length that the message does not have.
    #[error("{kind:?}: a payload of {found} bytes, expected {expected}")]
    Length {
        /// Kind of the frame.
        kind: Kind,
        /// Bytes that the counts or the header state.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// More than the negotiated limit.
    #[error("{kind:?}: {found} {of}, at most {limit} are allowed")]
    Limit {
        /// Kind of the frame.
        kind: Kind,
        /// Counted things, such as "bytes".
        of: &'static str,
        /// The limit.
        limit: u64,
        /// Number found.
        found: u64,
    },
    /// Another checksum than the header states.
    #[error("{kind:?}: CRC-32C is {found:#010x}, the header has {expected:#010x}")]
    Checksum {
        /// Kind of the frame.
        kind: Kind,
        /// Checksum in the header.
        expected: u32,
        /// Checksum of the bytes.
        found: u32,
    },
    /// A value that a field may not have.
    #[error("{kind:?}: {field} is {found}, expected {expected}")]
    Field {
        /// Kind of the frame.
        kind: Kind,
        /// Name of the field.
        field: &'static str,
        /// Values that are allowed, in words.
        expected: &'static str,
        /// Value found.
        found: u64,
    },
    /// A value that is infinite or no number.
    #[error("{kind:?}: value {column} of row {row} is not finite")]
    NotFinite {
        /// Kind of the frame.
        kind: Kind,
        /// Index of the row.
        row: usize,
        /// Index of the value in its row.
        column: usize,
    },
    /// Text that is not UTF-8.
    #[error("{kind:?}: text is not UTF-8 from byte {at} on")]
    Utf8 {
        /// Kind of the frame.
        kind: Kind,
        /// Valid bytes before it.
        at: usize,
    },
    /// A control message that is no JSON of its kind.
    #[error("{kind:?}: {message}")]
    Json {
        /// Kind of the frame.
        kind: Kind,
        /// Message of the parser, with line and column.
        message: String,
    },
    /// A fragment that does not follow the one before it.
    #[error("{kind:?} of task {task}: fragment {found}, expected {expected}")]
    Fragment {
        /// Kind of the frame.
        kind: Kind,
        /// Task of the frame.
        task: u64,
        /// Number of the fragment that comes next.
        expected: u16,
        /// Number found.
        found: u16,
    },
}

/// Rows that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// Not a whole number of rows.
    #[error("{found} values are no rows of {width}")]
    Shape {
        /// Values of a row.
        width: u32,
        /// Values found.
        found: usize,
    },
    /// A value that is infinite or no number.
    #[error("value {column} of row {row} is not finite")]
    NotFinite {
        /// Index of the row.
        row: usize,
        /// Index of the value in its row.
        column: usize,
    },
}

/// A token or proof that is not right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// Text of another form.
    #[error("expected a token of 32 hexadecimal digits, found {found} characters")]
    Token {
        /// Characters found.
        found: usize,
    },
    /// The peer has another token, or none.
    #[error("the proof of the {role} does not fit the token")]
    Wrong {
        /// "hub" or "worker".
        role: &'static str,
    },
}
