//! Locks against a second download of the same file, by this or another program. Where a file system has none,
//! downloads run without, each into a part of its own.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use crate::error::HubError;
use crate::event::{Event, Wait};
use crate::job::Job;

const LOOK: Duration = Duration::from_millis(100);

/// A held lock, until it is dropped.
pub(crate) struct Lock(Option<File>);

impl Lock {
    /// False where none could be had: another program may write the same files.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.0.is_some()
    }
}

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

/// Takes a lock for a removal, or makes one; `None` if it is held.
pub(crate) fn try_take(path: &Path) -> Option<Lock> {
    match open(path) {
        Some(file) => try_lock(file),
        None => try_free(path),
    }
}

/// Takes a lock for a removal; `None` if it is held or cannot be looked at. Makes no file.
pub(crate) fn try_free(path: &Path) -> Option<Lock> {
    // Some network file systems lock only files that are open for writing.
    match File::options().read(true).write(true).open(path) {
        Ok(file) => try_lock(file),
        Err(e) if e.kind() == ErrorKind::NotFound => Some(Lock(None)),
        Err(_) => None,
    }
}

fn try_lock(file: File) -> Option<Lock> {
    match file.try_lock() {
        Ok(()) => Some(Lock(Some(file))),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(_)) => Some(Lock(None)),
    }
}

/// The file of a lock; `None` where none can be made.
fn open(path: &Path) -> Option<File> {
    std::fs::create_dir_all(path.parent()?).ok()?;
    File::options().create(true).truncate(false).write(true).open(path).ok()
}
