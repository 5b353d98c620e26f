//! Signals that end a server.

use std::io;

/// Signals that end it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    #[cfg(unix)]
    Terminate,
}

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

    /// The next one.
    pub(super) async fn next(&mut self) -> End {
        tokio::select! {
            _ = self.interrupt.recv() => End::Interrupt,
            _ = self.terminate.recv() => End::Terminate,
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

    /// The next one.
    pub(super) async fn next(&mut self) -> End {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without signals it runs until it is killed.
            std::future::pending::<()>().await;
        }
        End::Interrupt
    }
}
