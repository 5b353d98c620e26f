//! Removal of what nobody names: old incomplete downloads, and blobs without a snapshot.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::incomplete::{delete, incomplete, lock_of_address, lock_of_blob};
use super::pointers::{named, pointers};
use super::remove::unnamed_blobs;
use super::{Cache, LOCKS, walk};
use crate::digest::Digest;
use crate::error::HubError;
use crate::lock;

/// The result of pruning, or of a trial of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Bytes that are free again.
    pub n_byte: u64,
}

/// Removes incomplete downloads that nobody locks and nobody has written for `age`, and blobs that no snapshot names
/// and are as old.
///
/// # Errors
/// [`HubError::File`].
pub(crate) fn prune(
    cache: &Cache,
    addresses: &Path,
    age: Duration,
    is_trial: bool,
) -> Result<Pruned, HubError> {
    let mut pruned = Pruned::default();
    let mut take = |candidates: Vec<Candidate>| -> Result<(), HubError> {
        for candidate in candidates {
            if candidate.free(age, is_trial)? {
                pruned.n_byte += candidate.size;
                pruned.files.push(candidate.path);
            }
        }
        Ok(())
    };
    for name in walk::folders(&cache.root).into_iter().filter(|name| name.starts_with("models--")) {
        take(of_repository(&cache.root.join(&name), &cache.root.join(LOCKS).join(&name))?)?;
    }
    for name in walk::folders(addresses) {
        let folder = addresses.join(name);
        let parts = incomplete(&folder)?.into_iter();
        let candidate = |(path, size): (PathBuf, u64)| {
            let lock = lock_of_address(&path, &folder);
            Candidate { path, size, lock, repository: None }
        };
        take(parts.map(candidate).collect())?;
    }
    Ok(pruned)
}

/// A file that nobody seemed to need when it was found.
#[derive(Debug)]
struct Candidate {
    path: PathBuf,
    /// Bytes that its removal frees.
    size: u64,
    lock: PathBuf,
    /// Of a whole blob, the folder whose snapshots may name it.
    repository: Option<PathBuf>,
}

/// Incomplete downloads and unnamed blobs of a repository.
///
/// # Errors
/// [`HubError::File`].
fn of_repository(folder: &Path, locks: &Path) -> Result<Vec<Candidate>, HubError> {
    let parts = incomplete(&folder.join("blobs"))?;
    let unnamed = unnamed_blobs(folder, &named(&pointers(folder)?))?;
    let candidate = |(path, size): (PathBuf, u64), repository: Option<&Path>| {
        let lock = lock_of_blob(&path, locks);
        Candidate { path, size, lock, repository: repository.map(Path::to_owned) }
    };
    let parts = parts.into_iter().map(|found| candidate(found, None));
    Ok(parts.chain(unnamed.into_iter().map(|found| candidate(found, Some(folder)))).collect())
}

impl Candidate {
    /// Removes the file under its lock, unless a trial; false if another program needs it after all.
    ///
    /// # Errors
    /// [`HubError::File`].
    fn free(&self, age: Duration, is_trial: bool) -> Result<bool, HubError> {
        // A lock that is made here keeps others from starting meanwhile; a trial leaves nothing behind.
        let lock = if is_trial { lock::try_free(&self.lock) } else { lock::try_take(&self.lock) };
        let Some(_lock) = lock else { return Ok(false) };
        // Under the lock: another program may have gone on with it, moved it to its place or linked it.
        if !is_old(&self.path, age) || self.is_named()? {
            return Ok(false);
        }
        Ok(is_trial || delete(&self.path)?)
    }

    /// True for a blob that a snapshot names.
    fn is_named(&self) -> Result<bool, HubError> {
        let Some(repository) = &self.repository else { return Ok(false) };
        let digest = self.path.file_name().and_then(OsStr::to_str).and_then(Digest::of_digits);
        let pointers = pointers(repository)?;
        Ok(digest.is_some_and(|digest| named(&pointers).contains(&digest)))
    }
}

/// True if a file, or a link itself, was not written for `age`.
fn is_old(path: &Path, age: Duration) -> bool {
    let modified = std::fs::symlink_metadata(path).and_then(|found| found.modified());
    let since = modified.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    since.is_some_and(|since| since >= age)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Candidates are found, then something happens, then they are removed.
    fn freed(happens: impl FnOnce(&Path, &Path)) -> Vec<bool> {
        let dir = tempfile::tempdir().unwrap();
        let (folder, locks) = (dir.path().join("models--a--b"), dir.path().join("locks"));
        let (part, blob) = ("ab".repeat(32) + part_ending(), "cd".repeat(32));
        std::fs::create_dir_all(folder.join("blobs")).unwrap();
        std::fs::write(folder.join("blobs").join(part), [0; 10]).unwrap();
        std::fs::write(folder.join("blobs").join(blob), [0; 20]).unwrap();
        let candidates = of_repository(&folder, &locks).unwrap();
        assert_eq!(candidates.iter().map(|candidate| candidate.size).collect::<Vec<_>>(), [10, 20]);
        happens(&folder, &locks);
        candidates.iter().map(|candidate| candidate.free(Duration::ZERO, false).unwrap()).collect()
    }

    fn part_ending() -> &'static str {
        crate::download::part::ENDING
    }

    #[test]
    fn files_that_are_needed_meanwhile_stay() {
        assert_eq!(freed(|_, _| {}), [true, true]);
        // Another program finishes the part.
        let finished = freed(|folder, _| {
            let part = folder.join("blobs").join("ab".repeat(32) + part_ending());
            std::fs::rename(part, folder.join("blobs").join("ab".repeat(32))).unwrap();
        });
        assert_eq!(finished, [false, true]);
        // Another program links the blob.
        #[cfg(unix)]
        assert_eq!(
            freed(|folder, _| {
                let snapshot = folder.join("snapshots/x");
                std::fs::create_dir_all(&snapshot).unwrap();
                let target = format!("../../blobs/{}", "cd".repeat(32));
                std::os::unix::fs::symlink(target, snapshot.join("a.gguf")).unwrap();
            }),
            [true, false]
        );
        // Another program waits for the lock, whose file was not there.
        let mut other = None;
        let locked = freed(|_, locks| {
            std::fs::create_dir_all(locks).unwrap();
            let file = std::fs::File::create(locks.join(format!("{}.lock", "ab".repeat(32)))).unwrap();
            file.lock().unwrap();
            other = Some(file);
        });
        assert_eq!(locked, [false, true]);
    }
}
