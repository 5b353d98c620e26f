//! Kinds of frames.

/// Kind of a frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A worker introduces itself.
    Hello = 0x01,
    /// The hub proves that it has the token, and asks for the same.
    Challenge = 0x02,
    /// The worker's proof.
    Proof = 0x03,
    /// The hub takes the worker.
    Welcome = 0x04,
    /// The hub does not.
    Refuse = 0x05,
    /// Units that the worker should hold.
    Assign = 0x06,
    /// Units that the worker holds.
    Have = 0x07,
    /// The sender leaves politely.
    Drain = 0x08,
    /// Columns for experts of a layer.
    Task = 0x10,
    /// Rows for a task.
    Result = 0x11,
    /// No rows for a task.
    Fail = 0x12,
    /// Tasks that nobody waits for any more.
    Cancel = 0x13,
    /// State of a worker.
    State = 0x14,
    /// Asks for a pong.
    Ping = 0x20,
    /// Answers a ping.
    Pong = 0x21,
    /// Columns for a span of layers.
    Span = 0x30,
    /// Rows for a span.
    SpanResult = 0x31,
    /// Positions of a sequence that a span forgets.
    Trim = 0x32,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 18] = [
        Kind::Hello,
        Kind::Challenge,
        Kind::Proof,
        Kind::Welcome,
        Kind::Refuse,
        Kind::Assign,
        Kind::Have,
        Kind::Drain,
        Kind::Task,
        Kind::Result,
        Kind::Fail,
        Kind::Cancel,
        Kind::State,
        Kind::Ping,
        Kind::Pong,
        Kind::Span,
        Kind::SpanResult,
        Kind::Trim,
    ];

    /// True for JSON messages.
    pub fn is_control(self) -> bool {
        (self as u8) < 0x10
    }

    /// True for kinds whose payload can be long enough for fragments.
    pub(crate) fn is_split(self) -> bool {
        matches!(self, Kind::Task | Kind::Result | Kind::Span | Kind::SpanResult)
    }

    /// True for kinds whose header names a task.
    pub(crate) fn has_task(self) -> bool {
        self.is_split()
    }

    /// True for kinds whose header may have a value in `epoch` and `layer`.
    pub(crate) fn has_place(self) -> bool {
        self.is_split() || matches!(self, Kind::Fail | Kind::Trim)
    }

    /// The kind of this number.
    pub fn find(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}
