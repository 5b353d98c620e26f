//! Signals: Ctrl-C stops a running generation, else the program; SIGTERM and SIGHUP end it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use crate::failure::INTERRUPTED as CTRL_C;
use crate::unfinished::abandon_and_exit;

static ANSWERING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
static AWAY: AtomicBool = AtomicBool::new(false);
static SERVING: AtomicBool = AtomicBool::new(false);
static RENEWING: AtomicBool = AtomicBool::new(false);
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Installs the handlers. Ctrl-C pressed twice during a generation, or outside one, ends the program, as other signals
/// do; incomplete files are removed.
///
/// May be called repeatedly.
pub(crate) fn install() -> anyhow::Result<()> {
    if INSTALLED.swap(true, Ordering::SeqCst) { Ok(()) } else { listen() }
}

/// From now on a server has handlers of its own for Ctrl-C and SIGTERM, with `renews` also for SIGHUP; a download still
/// ends with Ctrl-C.
pub(crate) fn leave_to_server(renews: bool) {
    SERVING.store(true, Ordering::SeqCst);
    RENEWING.store(renews, Ordering::SeqCst);
}

fn is_for_server() -> bool {
    SERVING.load(Ordering::SeqCst)
}

fn ctrl_c() {
    if AWAY.load(Ordering::SeqCst) || is_for_server() && !ANSWERING.load(Ordering::SeqCst) {
        return;
    }
    let first = !INTERRUPTED.swap(true, Ordering::SeqCst);
    if !(first && ANSWERING.load(Ordering::SeqCst) || is_for_server()) {
        abandon_and_exit(CTRL_C);
    }
}

/// Exit codes are 128 and the signal's number, as shells report them.
#[cfg(unix)]
fn listen() -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGINT => ctrl_c(),
                SIGTERM if is_for_server() => {}
                SIGHUP if RENEWING.load(Ordering::SeqCst) => {}
                other => abandon_and_exit(128 + other as u8),
            }
        }
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn listen() -> anyhow::Result<()> {
    Ok(ctrlc::set_handler(ctrl_c)?)
}

/// A running generation, until this is dropped. One within another ends with that.
pub(crate) struct Answering {
    is_outer: bool,
}

impl Answering {
    pub(crate) fn begin() -> Self {
        let is_outer = !ANSWERING.swap(true, Ordering::SeqCst);
        if is_outer {
            INTERRUPTED.store(false, Ordering::SeqCst);
        }
        Answering { is_outer }
    }

    /// Set by Ctrl-C, for work that looks at it on other threads.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        INTERRUPTED.clone()
    }

    /// True if Ctrl-C was pressed since the start.
    pub(crate) fn interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::SeqCst)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if self.is_outer {
            ANSWERING.store(false, Ordering::SeqCst);
            INTERRUPTED.store(false, Ordering::SeqCst);
        }
    }
}

/// Another program has the terminal, until this is dropped: Ctrl-C is for that program.
pub(crate) struct Away(());

impl Away {
    pub(crate) fn begin() -> Self {
        AWAY.store(true, Ordering::SeqCst);
        Away(())
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        AWAY.store(false, Ordering::SeqCst);
    }
}
