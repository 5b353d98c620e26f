//! Locks against a second download of the same file, by this or another program. Where a file system has none,
//! downloads run without: their results are verified anyway.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::error::HubError;
use crate::event::{Event, Wait};
use crate::job::Job;

const LOOK: Duration = Duration::from_millis(100);

/// A held lock, until it is dropped.
pub(crate) struct Lock(#[expect(dead_code, reason = "closing the file releases the lock")] Option<File>);

/// Takes the lock of a file, and waits while another program has it.
///
/// # Errors
/// [`HubError::Interrupted`].
pub(crate) fn acquire(path: &Path, job: &Job) -> Result<Lock, HubError> {
    let Some(file) = open(path) else { return Ok(Lock(None)) };
    let mut was_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock(Some(file))),
            Err(TryLockError::WouldBlock) => {
                if !was_told {
                    job.tell(Event::Waiting { reason: Wait::Lock(path.to_owned()), time: None });
                    was_told = true;
                }
                job.sleep(LOOK)?;
            }
            Err(TryLockError::Error(_)) => return Ok(Lock(None)),
        }
    }
}

/// True if another program holds the lock.
pub(crate) fn is_held(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// The file of a lock; `None` where none can be made.
fn open(path: &Path) -> Option<File> {
    std::fs::create_dir_all(path.parent()?).ok()?;
    File::options().create(true).truncate(false).write(true).open(path).ok()
}
