//! The door of the hub's socket: connections of strangers cost little, however many come and however slow they are.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use chaski_server::TlsAcceptor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use super::line::Line;

/// Connections at once, of workers and of everybody else. More are closed at once.
const OPEN: usize = 512;
/// Time for the handshake of TLS and the head of the first request.
const HEAD: Duration = Duration::from_secs(5);
/// Time without a byte after which a connection is closed. Workers answer a PING twice a second.
const IDLE: Duration = Duration::from_secs(60);

/// A listener that bounds connections in number and time.
pub(crate) struct Door {
    listener: TcpListener,
    tls: Option<Arc<TlsAcceptor>>,
    open: Arc<Semaphore>,
}

impl Door {
    /// A door of a socket, with TLS if there are certificates.
    pub(crate) fn new(listener: TcpListener, tls: Option<Arc<TlsAcceptor>>) -> Door {
        Door { listener, tls, open: Arc::new(Semaphore::new(OPEN)) }
    }
}

impl Listener for Door {
    type Io = Guarded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guarded, SocketAddr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            let Ok(permit) = self.open.clone().try_acquire_owned() else {
                tracing::info!(%address, "a connection was closed: {OPEN} are open");
                continue;
            };
            // A small frame leaves at once.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::warn!("TCP_NODELAY: {error}");
            }
            return (Guarded::new(Line::new(stream, self.tls.as_ref()), permit), address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Listener::local_addr(&self.listener)
    }
}

/// Address of the other side.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Caller(pub(crate) SocketAddr);

impl Connected<IncomingStream<'_, Door>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Caller {
        Caller(*stream.remote_addr())
    }
}

/// A connection that ends if nothing comes.
pub(crate) struct Guarded {
    stream: Line,
    /// Looks at `last` when it ends: bytes do not set it anew.
    timer: Pin<Box<Sleep>>,
    last: Instant,
    /// Something was sent: the first request was read.
    is_answered: bool,
    _permit: OwnedSemaphorePermit,
}

impl Guarded {
    fn new(stream: Line, permit: OwnedSemaphorePermit) -> Guarded {
        let timer = Box::pin(tokio::time::sleep(HEAD));
        Guarded { stream, timer, last: Instant::now(), is_answered: false, _permit: permit }
    }

    /// Ready once nothing has come for too long.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let due = self.last + if self.is_answered { IDLE } else { HEAD };
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(due);
        }
    }

    fn sent(&mut self) {
        (self.is_answered, self.last) = (true, Instant::now());
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buf) {
            if self.is_answered {
                self.last = Instant::now();
            }
            return Poll::Ready(read);
        }
        ready!(self.poll_late(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nothing came for too long")))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let n = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.sent();
        Poll::Ready(Ok(n))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let n = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs))?;
        self.sent();
        Poll::Ready(Ok(n))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
