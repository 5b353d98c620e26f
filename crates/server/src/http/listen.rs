//! Sockets, and the end of a server.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixSocket};
use tokio::sync::watch;
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::begun::begun;
use super::guard::Peer;
use super::paced::{HEAD, Paced, Turned, Turns};
use super::tls::Acceptor;
use crate::config::Listen;

/// Connections that wait to be accepted, if the system allows as many. One that finds no room tries again after a
/// second: with the usual 128 a burst delays all clients.
const BACKLOG: u32 = 4096;

/// A bound socket.
pub(crate) enum Socket {
    Tcp(TcpListener, Option<Arc<Acceptor>>),
    #[cfg(unix)]
    Unix(UnixListener, PathBuf),
}

impl Socket {
    /// Binds a socket.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) async fn bind(listen: &Listen, tls: Option<Arc<Acceptor>>) -> io::Result<Socket> {
        match listen {
            Listen::Tcp(address) => {
                let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
                // Connections of an earlier process may still be closing. Elsewhere others could take the port with it.
                #[cfg(unix)]
                socket.set_reuseaddr(true)?;
                socket.bind(*address)?;
                Ok(Socket::Tcp(socket.listen(BACKLOG)?, tls))
            }
            #[cfg(unix)]
            Listen::Unix(path) => {
                // A socket that nobody listens to is left over from a process that was killed.
                if path.exists() && std::os::unix::net::UnixStream::connect(path).is_err() {
                    std::fs::remove_file(path)?;
                }
                let socket = UnixSocket::new_stream()?;
                socket.bind(path)?;
                Ok(Socket::Unix(socket.listen(BACKLOG)?, path.clone()))
            }
            #[cfg(not(unix))]
            Listen::Unix(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no such sockets"))
            }
        }
    }

    /// Its address as a URL.
    pub(crate) fn url(&self) -> String {
        match self {
            Socket::Tcp(listener, tls) => {
                let scheme = if tls.is_some() { "https" } else { "http" };
                let address =
                    listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string());
                format!("{scheme}://{address}")
            }
            #[cfg(unix)]
            Socket::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    /// The address that it is bound to, if it has one.
    pub(crate) fn address(&self) -> Option<std::net::SocketAddr> {
        match self {
            Socket::Tcp(listener, _) => listener.local_addr().ok(),
            #[cfg(unix)]
            Socket::Unix(..) => None,
        }
    }

    /// Serves connections until `stop` says so, then ends them when their requests do.
    pub(crate) async fn serve(self, router: Router, mut stop: watch::Receiver<bool>) {
        let tls = match &self {
            Socket::Tcp(_, tls) => tls.clone(),
            #[cfg(unix)]
            Socket::Unix(..) => None,
        };
        let server = Arc::new(server());
        let open = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let connection = Connection {
                        server: server.clone(),
                        open: open.watcher(),
                        stop: stop.clone(),
                        peer,
                        router: router.clone(),
                    };
                    tokio::spawn(connection.run(stream, tls.clone()));
                }
                // Too many open files, for instance: others close some.
                Err(error) => {
                    tracing::warn!("a connection cannot be accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        #[cfg(unix)]
        if let Socket::Unix(_, path) = &self {
            // Whoever removed it first did what was to be done.
            let _ = std::fs::remove_file(path);
        }
        drop(self);
        open.shutdown().await;
    }

    async fn accept(&self) -> io::Result<(Box<dyn Stream>, Peer)> {
        match self {
            Socket::Tcp(listener, _) => {
                let (stream, address) = listener.accept().await?;
                // Tokens are small and should not wait for each other.
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), Peer(Some(address.ip()))))
            }
            #[cfg(unix)]
            Socket::Unix(listener, _) => Ok((Box::new(listener.accept().await?.0), Peer(None))),
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

fn server() -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new());
    // Some clients look for names as others write them.
    server.http1().header_read_timeout(None).title_case_headers(true);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(60));
    server
}

/// A connection that has been accepted.
struct Connection {
    server: Arc<Builder<TokioExecutor>>,
    open: Watcher,
    stop: watch::Receiver<bool>,
    peer: Peer,
    router: Router,
}

impl Connection {
    /// Serves it until it ends. Clients that break off are no errors of the server.
    async fn run(self, stream: Box<dyn Stream>, tls: Option<Arc<Acceptor>>) {
        match tls {
            None => self.serve(stream).await,
            Some(tls) => match tls.accept(stream).await {
                Ok(stream) => self.serve(stream).await,
                Err(error) => tracing::debug!("no TLS: {error}"),
            },
        }
    }

    async fn serve(self, stream: impl Stream + 'static) {
        let Connection { server, open, mut stop, peer, router } = self;
        let stream = tokio::select! {
            begun = timeout(HEAD, begun(stream)) => begun,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        // A client that sends nothing in time is gone.
        let Ok(Ok(stream)) = stream else { return };
        let named = move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request
        };
        if stream.is_http2() {
            let service = TowerToHyperService::new(router.map_request(named));
            let connection = server.serve_connection(TokioIo::new(stream), service).into_owned();
            let _ = open.watch(connection).await;
            return;
        }
        let turns = Turns::default();
        let stream = Paced::new(stream, turns.clone());
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let (turn, answered) = (turns.begin(), router.clone().oneshot(named(request)));
            async move { Ok::<_, Infallible>(answered.await?.map(|body| Turned::new(body, turn))) }
        });
        let service = TowerToHyperService::new(service);
        let connection = server.serve_connection(TokioIo::new(stream), service).into_owned();
        let _ = open.watch(connection).await;
    }
}
