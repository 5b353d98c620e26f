//! Bytes of a connection to the hub: as they are, or in TLS.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use chaski_server::TlsAcceptor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::Accept;
use tokio_rustls::server::TlsStream;

/// A connection. Its handshake is a part of the first read, so that a slow one holds nobody up.
pub(crate) enum Line {
    /// Everybody on the way sees what is said.
    Plain(TcpStream),
    /// Before the first byte.
    Handshake(Box<Accept<TcpStream>>),
    /// After the handshake.
    Tls(Box<TlsStream<TcpStream>>),
    /// After one that failed.
    Closed,
}

impl Line {
    /// The connection, with TLS if there are certificates.
    pub(crate) fn new(stream: TcpStream, tls: Option<&Arc<TlsAcceptor>>) -> Line {
        match tls {
            None => Line::Plain(stream),
            Some(tls) => {
                let acceptor = tokio_rustls::TlsAcceptor::from(tls.config());
                Line::Handshake(Box::new(acceptor.accept(stream)))
            }
        }
    }

    /// The stream, after the handshake.
    fn poll_stream(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<&mut dyn Stream>>> {
        if let Line::Handshake(handshake) = self {
            let ended = ready!(Pin::new(handshake.as_mut()).poll(cx));
            *self = Line::Closed;
            *self = Line::Tls(Box::new(ended?));
        }
        Poll::Ready(match self {
            Line::Plain(stream) => Ok(Pin::new(stream)),
            Line::Tls(stream) => Ok(Pin::new(stream.as_mut())),
            Line::Handshake(_) | Line::Closed => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

/// Both directions.
trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_stream(cx))?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_stream(cx))?.poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            // Nothing was written.
            Line::Handshake(_) | Line::Closed => Poll::Ready(Ok(())),
            _ => ready!(self.poll_stream(cx))?.poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            // The socket closes with it.
            Line::Handshake(_) | Line::Closed => Poll::Ready(Ok(())),
            _ => ready!(self.poll_stream(cx))?.poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_stream(cx))?.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        // TLS takes several pieces as one record.
        true
    }
}
