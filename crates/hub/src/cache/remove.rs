//! Removal of models: links first, then blobs that no snapshot names any more.

use std::path::{Path, PathBuf};

use super::{RepoFolder, list, walk};
use crate::download::part;
use crate::error::HubError;

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files of snapshots.
    pub n_file: usize,
    /// Bytes that are free again.
    pub n_byte: u64,
    /// Bytes of removed files that others still use.
    pub n_kept: u64,
}

/// Removes files of all snapshots, or with `None` the whole repository; blobs of others stay, and contents that
/// repositories share.
///
/// # Errors
/// [`HubError::File`].
pub(crate) fn remove(repo: &RepoFolder, paths: Option<&[String]>) -> Result<Removed, HubError> {
    let mut removed = Removed::default();
    for commit in walk::folders(&repo.folder.join("snapshots")) {
        let snapshot = repo.snapshot(&commit);
        for path in walk::files(&snapshot) {
            if paths.is_none_or(|paths| paths.contains(&path)) {
                let place = repo.pointer(&commit, &path);
                removed.n_file += 1;
                let size = std::fs::metadata(&place).map_or(0, |found| found.len());
                if is_link(&place) {
                    removed.n_kept += size;
                } else {
                    removed.n_byte += size;
                }
                delete(&place)?;
            }
        }
        remove_empty(&snapshot);
    }
    let freed = unnamed_blobs(&repo.folder);
    for (blob, size) in &freed {
        delete(blob)?;
        removed.n_byte += size;
        removed.n_kept = removed.n_kept.saturating_sub(*size);
    }
    let is_empty = walk::files(&repo.folder.join("snapshots")).is_empty();
    if is_empty {
        // References, lists and parts are nothing by themselves.
        std::fs::remove_dir_all(&repo.folder)
            .map_err(|source| HubError::File { path: repo.folder.clone(), source })?;
        // Locks of running downloads stay on systems that keep open files.
        let _ = std::fs::remove_dir_all(&repo.locks);
    }
    Ok(removed)
}

/// Blobs that no snapshot names, with the bytes that their removal frees: none for a link into the folder that
/// repositories share. Incomplete downloads are no blobs.
pub(super) fn unnamed_blobs(folder: &Path) -> Vec<(PathBuf, u64)> {
    let named = list::named_blobs(folder);
    let entries = std::fs::read_dir(folder.join("blobs")).into_iter().flatten().flatten();
    let unnamed = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        crate::digest::Digest::of_digits(&name).filter(|_| !named.contains(&name))?;
        let size = if is_link(&entry.path()) { 0 } else { entry.metadata().ok()?.len() };
        Some((entry.path(), size))
    });
    unnamed.collect()
}

pub(super) fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink())
}

/// # Errors
/// [`HubError::File`].
pub(super) fn delete(path: &Path) -> Result<(), HubError> {
    if path.to_string_lossy().ends_with(part::ENDING) {
        part::remove(path);
        return Ok(());
    }
    std::fs::remove_file(path).map_err(|source| HubError::File { path: path.to_owned(), source })
}

/// Removes folders without files, from the deepest on.
fn remove_empty(folder: &Path) {
    for name in walk::folders(folder) {
        remove_empty(&folder.join(name));
    }
    // Folders with files stay by themselves.
    let _ = std::fs::remove_dir(folder);
}

/// Removes a damaged file of a snapshot with its blob; a link to contents that repositories share goes, they stay.
///
/// # Errors
/// [`HubError::File`].
pub(crate) fn forget(repo: &RepoFolder, commit: &str, path: &str) -> Result<(), HubError> {
    let pointer = repo.pointer(commit, path);
    if let Some(digest) = super::link::digest(&pointer) {
        let blob = repo.blob(&digest);
        if std::fs::symlink_metadata(&blob).is_ok() {
            delete(&blob)?;
        }
    }
    delete(&pointer)
}
