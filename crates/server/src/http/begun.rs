//! The first bytes of a connection, by which the version of HTTP is known.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// The bytes with which HTTP/2 begins.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream of which the first bytes have been read.
pub(super) struct Begun<S> {
    stream: S,
    first: [u8; PREFACE.len()],
    /// Those of them that are still to be given.
    rest: std::ops::Range<usize>,
}

impl<S> Begun<S> {
    /// True for HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.first == *PREFACE
    }
}

/// Reads until the version is known. The library that serves connections does the same without a limit of time: a
/// client that sends nothing would stay for ever.
///
/// # Errors
/// Those of the stream.
pub(super) async fn begun<S: AsyncRead + Unpin>(mut stream: S) -> io::Result<Begun<S>> {
    let (mut first, mut n) = ([0; PREFACE.len()], 0);
    while n < PREFACE.len() && first[..n] == PREFACE[..n] {
        match stream.read(&mut first[n..]).await? {
            0 => break,
            read => n += read,
        }
    }
    Ok(Begun { stream, first, rest: 0..n })
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let n = this.rest.len().min(buf.remaining());
        buf.put_slice(&this.first[this.rest.start..this.rest.start + n]);
        this.rest.start += n;
        Poll::Ready(Ok(()))
    }
}

writes_through!(Begun);

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// All bytes of a stream after its beginning has been read; the client sends them in pieces of this size.
    async fn read(sent: &[u8], piece: usize) -> Vec<u8> {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let send = async {
            for piece in sent.chunks(piece) {
                client.write_all(piece).await.expect("the pipe has room");
                tokio::task::yield_now().await;
            }
            drop(client);
        };
        let take = async {
            let mut all = Vec::new();
            begun(server).await.expect("a pipe").read_to_end(&mut all).await.expect("a pipe");
            all
        };
        tokio::join!(send, take).1
    }

    #[test]
    fn no_byte_is_lost() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let http2 = [PREFACE.as_slice(), b"and frames"].concat();
        for sent in [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &http2, b"PRI", b"POST / HTTP/1.1\r\n\r\n", b""] {
            for piece in [1, 5, 100] {
                assert_eq!(runtime.block_on(read(sent, piece)), sent, "{piece}");
            }
        }
    }
}
