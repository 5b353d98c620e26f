//! Signals that end a server.

use std::io;

/// Ctrl-C and SIGTERM. It counts from when it is made, so it comes before the first line that tells of the server.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Inside of a runtime.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Ready at the next one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Inside of a runtime.
    ///
    /// # Errors
    /// None.
    pub(super) fn new() -> io::Result<Signals> {
        Ok(Signals)
    }

    /// Ready at the next one.
    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without signals it runs until it is killed.
            std::future::pending::<()>().await;
        }
    }
}
