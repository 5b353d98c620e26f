//! A message of the protocol, and the frames that carry it.

use crate::answer::{Answer, Fail};
use crate::control::Control;
use crate::error::WireError;
use crate::header::{Flags, HEADER, Header};
use crate::kind::Kind;
use crate::limits::Limits;
use crate::notice::State;
use crate::notice::{decode_cancel, decode_clock};
use crate::span::{Span, Trim};
use crate::task::Task;

/// A message, whose payload is in one frame or in several fragments.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Task that it belongs to; 0 where the kind has none. Ids grow and are never used again in a hub's life.
    pub task: u64,
    /// Epoch of the assignment; 0 where the kind has none.
    pub epoch: u32,
    /// Layer, or first layer of a span; 0 where the kind has none.
    pub layer: u16,
    /// Payload.
    pub body: Body,
}

/// Payload of a [`Frame`].
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// TASK: columns for experts of a layer.
    Task(Task),
    /// RESULT: rows for a task. `sum` says that the rows are sums of columns.
    Result {
        /// The rows.
        answer: Answer,
        /// The task had weights.
        sum: bool,
    },
    /// FAIL: no rows for a task, or, with task 0, a complaint about a frame.
    Fail(Fail),
    /// CANCEL: tasks that nobody waits for any more, in ascending order.
    Cancel(Vec<u64>),
    /// STATE: state of a worker.
    State(State),
    /// PING with the sender's clock.
    Ping(u64),
    /// PONG with the clock of the ping.
    Pong(u64),
    /// SPAN: columns for a span of layers.
    Span(Span),
    /// SPAN_RESULT: rows for a span.
    SpanResult(Answer),
    /// TRIM: positions that a span forgets.
    Trim(Trim),
    /// A control message.
    Control(Control),
}

impl Body {
    /// Kind of the frames that carry it.
    pub fn kind(&self) -> Kind {
        match self {
            Body::Task(_) => Kind::Task,
            Body::Result { .. } => Kind::Result,
            Body::Fail(_) => Kind::Fail,
            Body::Cancel(_) => Kind::Cancel,
            Body::State(_) => Kind::State,
            Body::Ping(_) => Kind::Ping,
            Body::Pong(_) => Kind::Pong,
            Body::Span(_) => Kind::Span,
            Body::SpanResult(_) => Kind::SpanResult,
            Body::Trim(_) => Kind::Trim,
            Body::Control(control) => control.kind(),
        }
    }

    fn is_sum(&self) -> bool {
        match self {
            Body::Task(task) => task.weights.is_some(),
            Body::Result { sum, .. } => *sum,
            _ => false,
        }
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Body::Task(task) => task.encode(),
            Body::Result { answer, .. } | Body::SpanResult(answer) => answer.encode(),
            Body::Fail(fail) => fail.encode(),
            Body::Cancel(ids) => ids.iter().flat_map(|id| id.to_le_bytes()).collect(),
            Body::State(state) => state.encode(),
            Body::Ping(clock) | Body::Pong(clock) => clock.to_le_bytes().to_vec(),
            Body::Span(span) => span.encode(),
            Body::Trim(trim) => trim.encode(),
            Body::Control(control) => control.encode(),
        }
    }

    fn decode(kind: Kind, sum: bool, payload: &[u8]) -> Result<Body, WireError> {
        Ok(match kind {
            Kind::Task => Body::Task(Task::decode(payload, sum)?),
            Kind::Result => Body::Result { answer: Answer::decode(kind, payload)?, sum },
            Kind::Fail => Body::Fail(Fail::decode(payload)?),
            Kind::Cancel => Body::Cancel(decode_cancel(payload)?),
            Kind::State => Body::State(State::decode(payload)?),
            Kind::Ping => Body::Ping(decode_clock(kind, payload)?),
            Kind::Pong => Body::Pong(decode_clock(kind, payload)?),
            Kind::Span => Body::Span(Span::decode(payload)?),
            Kind::SpanResult => Body::SpanResult(Answer::decode(kind, payload)?),
            Kind::Trim => Body::Trim(Trim::decode(payload)?),
            kind => Body::Control(Control::decode(kind, payload)?),
        })
    }
}

impl Frame {
    /// A frame without task, epoch and layer.
    pub fn plain(body: Body) -> Frame {
        Frame { task: 0, epoch: 0, layer: 0, body }
    }

    /// The frames that carry the message: one, or fragments of at most `limits.fragment` bytes. With `crc` each has a
    /// checksum.
    ///
    /// # Errors
    /// [`WireError::Limit`] if the payload is longer than the peer takes, and [`WireError::Field`] if the fields of the
    /// header are not those of the kind.
    pub fn encode(&self, limits: &Limits, crc: bool) -> Result<Vec<Vec<u8>>, WireError> {
        let kind = self.body.kind();
        let payload = self.body.encode();
        limits.check_message(kind, payload.len() as u64)?;
        let header = |more, fragment| Header {
            kind,
            flags: Flags { sum: self.body.is_sum(), more, crc },
            length: 0,
            task: self.task,
            epoch: self.epoch,
            layer: self.layer,
            fragment,
        };
        header(false, 0).check()?;
        let n = limits.fragment.min(limits.frame).max(1) as usize;
        if !kind.is_split() || payload.len() <= n {
            limits.check_frame(kind, payload.len() as u64)?;
            return Ok(vec![header(false, 0).frame(&payload)]);
        }
        let n_fragment = payload.len().div_ceil(n);
        crate::limits::check(kind, "fragments", 1 << 16, n_fragment as u64)?;
        let fragments = payload.chunks(n).enumerate();
        Ok(fragments.map(|(i, part)| header(i + 1 < n_fragment, i as u16).frame(part)).collect())
    }

    /// Reads a message that is one frame.
    ///
    /// # Errors
    /// Everything that [`WireError`] lists; a fragment, too, which [`crate::Assembler`] takes.
    pub fn decode(message: &[u8], limits: &Limits) -> Result<Frame, WireError> {
        let header = Header::read(message, limits)?;
        if header.flags.more || header.fragment > 0 {
            let (kind, task, found) = (header.kind, header.task, header.fragment);
            return Err(WireError::Fragment { kind, task, expected: 0, found });
        }
        Frame::of(&header, &message[HEADER..])
    }

    /// The message of a header and a whole payload.
    pub(crate) fn of(header: &Header, payload: &[u8]) -> Result<Frame, WireError> {
        let body = Body::decode(header.kind, header.flags.sum, payload)?;
        Ok(Frame { task: header.task, epoch: header.epoch, layer: header.layer, body })
    }
}
