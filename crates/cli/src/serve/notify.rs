//! Words for the service manager: systemd's protocol of `sd_notify`.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A state of the server, in the manager's words.
#[derive(Copy, Clone, Debug)]
pub(super) enum State {
    /// Requests are answered.
    Ready,
    /// It drains.
    Stopping,
}

/// Tells the manager that started this process, if it wants to know.
pub(super) fn notify(state: State) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return };
    let text = match state {
        State::Ready => "READY=1",
        State::Stopping => "STOPPING=1",
    };
    if let Err(error) = send(&name, text) {
        // Without the word, the manager gives up by itself after its own time.
        tracing::warn!("the service manager is not told `{text}`: {error}");
    }
}

fn send(name: &OsStr, text: &str) -> io::Result<()> {
    UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address(name)?).map(drop)
}

/// A path, or on Linux a name without a file, which begins with `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.as_encoded_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt as _;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(name)
}
