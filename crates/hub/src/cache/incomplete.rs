//! Incomplete downloads in a folder: those of this program, and of others that share the cache.

use std::path::{Path, PathBuf};

use super::{own_file, walk};
use crate::download::part;
use crate::error::HubError;

/// Endings of incomplete downloads: ours, huggingface_hub's, llama.cpp's.
const ENDINGS: [&str; 3] = [part::ENDING, ".incomplete", ".downloadInProgress"];

/// Incomplete downloads in a folder, with their bytes; a note of ours without its part is one, too.
///
/// # Errors
/// [`HubError::File`].
pub(super) fn incomplete(folder: &Path) -> Result<Vec<(PathBuf, u64)>, HubError> {
    let entries =
        walk::entries(folder).map_err(|source| HubError::File { path: folder.to_owned(), source })?;
    let found = entries.into_iter().filter(|(_, is_folder)| !is_folder).filter_map(|(name, _)| {
        let (name, path) = (name.to_str()?, folder.join(&name));
        let is_lone_note =
            || part::of_note(name).is_some_and(|part| std::fs::symlink_metadata(folder.join(part)).is_err());
        let is_incomplete = ENDINGS.iter().any(|ending| name.ends_with(ending)) || is_lone_note();
        let size = is_incomplete.then(|| std::fs::symlink_metadata(&path).ok())??.len();
        Some((path, size))
    });
    Ok(found.collect())
}

/// The lock of a blob, whole or not: that of the digest before the first dot, as in
/// `<digest>.<eight digits>.incomplete`.
pub(super) fn lock_of_blob(blob: &Path, locks: &Path) -> PathBuf {
    let name = blob.file_name().unwrap_or_default().to_string_lossy();
    locks.join(format!("{}.lock", name.split('.').next().unwrap_or(&name)))
}

/// The lock of an incomplete file in the folder of an address.
pub(super) fn lock_of_address(part: &Path, folder: &Path) -> PathBuf {
    let name = part.file_name().unwrap_or_default().to_string_lossy();
    own_file(folder, part::of_note(&name).unwrap_or(&name).trim_end_matches(part::ENDING), "lock")
}

/// Removes a file, of an incomplete download with its note; false if it was gone.
///
/// # Errors
/// [`HubError::File`].
pub(super) fn delete(path: &Path) -> Result<bool, HubError> {
    match std::fs::remove_file(path) {
        Ok(()) => {
            part::remove_note(path);
            Ok(true)
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(HubError::File { path: path.to_owned(), source }),
    }
}
