//! Removal of what nobody names: old incomplete downloads, and blobs without a snapshot.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::pointers::{named, pointers};
use super::remove::{delete, unnamed_blobs};
use super::{Cache, LOCKS, own_file, walk};
use crate::download::part;
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

/// Endings of incomplete downloads: ours, huggingface_hub's, llama.cpp's.
const PARTS: [&str; 3] = [part::ENDING, ".incomplete", ".downloadInProgress"];

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
    for name in walk::folders(&cache.root).into_iter().filter(|name| name.starts_with("models--")) {
        let folder = cache.root.join(&name);
        let locks = cache.root.join(LOCKS).join(&name);
        let mut files = old_parts(&folder.join("blobs"), age, &locks);
        let pointers = pointers(&folder)?;
        let unnamed = unnamed_blobs(&folder, &named(&pointers))?;
        files.extend(unnamed.into_iter().filter(|(path, _)| is_old(path, age) && is_free(path, &locks)));
        take(&mut pruned, files, is_trial)?;
    }
    for name in walk::folders(addresses) {
        let folder = addresses.join(name);
        take(&mut pruned, old_parts(&folder, age, &folder), is_trial)?;
    }
    Ok(pruned)
}

fn take(pruned: &mut Pruned, files: Vec<(PathBuf, u64)>, is_trial: bool) -> Result<(), HubError> {
    for (path, size) in files {
        if !is_trial {
            delete(&path)?;
        }
        pruned.files.push(path);
        pruned.n_byte += size;
    }
    Ok(())
}

fn old_parts(folder: &Path, age: Duration, locks: &Path) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let parts = entries.filter_map(|entry| {
        let (name, path) = (entry.file_name().into_string().ok()?, entry.path());
        PARTS.iter().find(|ending| name.ends_with(**ending))?;
        let size = entry.metadata().ok()?.len();
        (is_free(&path, locks) && is_old(&path, age)).then_some((path, size))
    });
    parts.collect()
}

/// True if nobody holds the lock of a blob or part: that of the digest before its first dot, as in
/// `<digest>.<eight digits>.incomplete`, or that of a file of an address.
fn is_free(path: &Path, locks: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let digest = name.split('.').next().unwrap_or(&name);
    let own = own_file(locks, name.trim_end_matches(part::ENDING), "lock");
    !lock::is_held(&locks.join(format!("{digest}.lock"))) && !lock::is_held(&own)
}

/// True if a file, or a link itself, was not written for `age`.
fn is_old(path: &Path, age: Duration) -> bool {
    let modified = std::fs::symlink_metadata(path).and_then(|found| found.modified());
    let since = modified.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    since.is_some_and(|since| since >= age)
}
