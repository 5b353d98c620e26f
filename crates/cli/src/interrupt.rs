//! Ctrl-C: it stops an answer that is under way, else the program. A request to end (SIGTERM) and a terminal that is closed
//! (SIGHUP) are the same.

use std::sync::atomic::{AtomicBool, Ordering};

static ANSWERING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Takes over Ctrl-C. Pressed twice during an answer, or while there is none, it ends the program; files that are not
/// complete are removed.
///
/// May be called again.
pub(crate) fn install() -> anyhow::Result<()> {
    if INSTALLED.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        let first = !INTERRUPTED.swap(true, Ordering::SeqCst);
        if !(first && ANSWERING.load(Ordering::SeqCst)) {
            crate::output::abandon_and_exit(crate::failure::INTERRUPTED);
        }
    })?;
    Ok(())
}

/// An answer is under way, until this is dropped.
pub(crate) struct Answering(());

impl Answering {
    pub(crate) fn begin() -> Self {
        INTERRUPTED.store(false, Ordering::SeqCst);
        ANSWERING.store(true, Ordering::SeqCst);
        Answering(())
    }

    /// Ctrl-C was pressed since the beginning.
    pub(crate) fn interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::SeqCst)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        ANSWERING.store(false, Ordering::SeqCst);
        INTERRUPTED.store(false, Ordering::SeqCst);
    }
}
