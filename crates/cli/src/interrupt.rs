//! Ctrl-C: it stops a running generation, else the program. SIGTERM and SIGHUP are handled the same way.

use std::sync::atomic::{AtomicBool, Ordering};

static ANSWERING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Installs the Ctrl-C handler. Pressed twice during a generation, or outside one, it ends the program; incomplete
/// files are removed.
///
/// May be called repeatedly.
pub(crate) fn install() -> anyhow::Result<()> {
    if INSTALLED.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        let first = !INTERRUPTED.swap(true, Ordering::SeqCst);
        if !(first && ANSWERING.load(Ordering::SeqCst)) {
            crate::unfinished::abandon_and_exit(crate::failure::INTERRUPTED);
        }
    })?;
    Ok(())
}

/// A running generation, until this is dropped.
pub(crate) struct Answering(());

impl Answering {
    pub(crate) fn begin() -> Self {
        INTERRUPTED.store(false, Ordering::SeqCst);
        ANSWERING.store(true, Ordering::SeqCst);
        Answering(())
    }

    /// True if Ctrl-C was pressed since the start.
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
