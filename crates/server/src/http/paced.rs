//! The time that a connection of HTTP/1.1 has between requests, and for the head of one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Time from the first byte of a head to its last.
pub(super) const HEAD: Duration = Duration::from_secs(10);

/// Time without a request. Pools of clients and routers hold connections for less.
pub(super) const IDLE: Duration = Duration::from_secs(75);

/// The requests of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Those whose head was read.
    n_begun: AtomicUsize,
    /// Those whose responses were sent.
    n_ended: AtomicUsize,
}

impl Turns {
    /// Begins a request.
    pub(super) fn begin(&self) -> Turn {
        self.0.n_begun.fetch_add(1, Ordering::Relaxed);
        Turn(self.clone())
    }
}

/// A request, until its response is sent.
pub(super) struct Turn(Turns);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.0.n_ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The body of a response, which ends a turn.
pub(super) struct Turned {
    body: Body,
    #[expect(dead_code, reason = "the turn ends with it")]
    turn: Turn,
}

impl Turned {
    pub(super) fn new(body: Body, turn: Turn) -> Turned {
        Turned { body, turn }
    }
}

impl HttpBody for Turned {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body.frame()).poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Owner of the next bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    Head,
    /// A body, or nothing before the response is sent.
    Request,
    Idle,
}

/// A stream that ends when a head takes too long, or when none comes.
pub(super) struct Paced<S> {
    stream: S,
    turns: Turns,
    /// Requests that had begun at the last look.
    n_begun: usize,
    phase: Phase,
    timer: Pin<Box<Sleep>>,
}

impl<S> Paced<S> {
    /// A stream whose first head has begun.
    pub(super) fn new(stream: S, turns: Turns) -> Paced<S> {
        Paced { stream, turns, n_begun: 0, phase: Phase::Head, timer: Box::pin(sleep(HEAD)) }
    }

    fn set(&mut self, phase: Phase, limit: Duration) {
        self.phase = phase;
        self.timer.as_mut().reset(Instant::now() + limit);
    }

    /// Takes note of requests that have begun or ended.
    fn look(&mut self) {
        let counts = &self.turns.0;
        let n_ended = counts.n_ended.load(Ordering::Relaxed);
        let n_begun = counts.n_begun.load(Ordering::Relaxed);
        if n_begun > n_ended {
            self.phase = Phase::Request;
        } else if n_begun > self.n_begun || self.phase == Phase::Request {
            self.set(Phase::Idle, IDLE);
        }
        self.n_begun = n_begun;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.look();
        match Pin::new(&mut this.stream).poll_read(cx, buf) {
            Poll::Pending if this.phase != Phase::Request => this.timer.as_mut().poll(cx).map(Ok),
            read => {
                if read.is_ready() && this.phase == Phase::Idle {
                    this.set(Phase::Head, HEAD);
                }
                read
            }
        }
    }
}

writes_through!(Paced);
