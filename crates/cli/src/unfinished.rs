//! Files that are not complete yet, which the end of the program must not leave.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Incomplete temporary files; Ctrl-C removes them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Incomplete temporary files.
pub(crate) fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes incomplete files and ends the program.
pub(crate) fn abandon_and_exit(code: u8) -> ! {
    // The lock stays held: files are created and renamed under it, so nothing is while the process ends.
    let paths = unfinished();
    for path in paths.iter() {
        // Nobody is left to tell.
        let _ = fs::remove_file(path);
    }
    std::process::exit(code.into())
}
