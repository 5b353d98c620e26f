//! Removal of models: links first, then blobs that no snapshot names any more.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::incomplete::{delete, incomplete, lock_of_blob};
use super::pointers::{Pointer, named, pointers};
use super::{RepoFolder, walk};
use crate::digest::Digest;
use crate::error::HubError;
use crate::lock;

/// The result of a removal, or of a trial of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files of snapshots.
    pub files: Vec<PathBuf>,
    /// Bytes that are free again.
    pub n_byte: u64,
    /// Bytes of removed files that others still use.
    pub n_kept: u64,
}

/// The files of a repository that a name means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Those of this commit; of all if unset.
    pub(crate) commit: Option<String>,
    /// These paths; all if unset.
    pub(crate) paths: Option<Vec<String>>,
}

impl Scope {
    /// True for the whole repository.
    pub(crate) fn is_all(&self) -> bool {
        self.commit.is_none() && self.paths.is_none()
    }

    /// True if a file of a snapshot is meant.
    pub(crate) fn has(&self, commit: &OsStr, path: Option<&str>) -> bool {
        let has_path = |paths: &Vec<String>| path.is_some_and(|path| paths.iter().any(|known| known == path));
        self.commit.as_deref().is_none_or(|known| commit == known) && self.paths.as_ref().is_none_or(has_path)
    }
}

/// Removes files of snapshots, and the blobs that only they named. Of the whole repository, blobs that no snapshot
/// names and incomplete downloads go, too. Those whose lock another program holds stay, as contents that repositories
/// share.
///
/// # Errors
/// [`HubError::File`], before the first removal if a folder cannot be read.
pub(crate) fn remove(repo: &RepoFolder, scope: &Scope, is_trial: bool) -> Result<Removed, HubError> {
    let mut all = pointers(&repo.folder)?;
    if scope.is_all() {
        all.retain(|pointer| !pointer.is_elsewhere);
    }
    let (gone, stays): (Vec<Pointer>, Vec<Pointer>) = all
        .into_iter()
        .partition(|pointer| !pointer.is_elsewhere && scope.has(&pointer.commit, pointer.path.as_deref()));
    let stays = named(&stays);
    let mut contents: Vec<(PathBuf, u64)> = Vec::new();
    if scope.is_all() {
        contents = unnamed_blobs(&repo.folder, &stays)?;
        contents.extend(incomplete(&repo.folder.join("blobs"))?);
    } else {
        for digest in named(&gone).difference(&stays) {
            contents.extend(size_of_own(&repo.blob(digest)).map(|size| (repo.blob(digest), size)));
        }
    }
    let mut removed = Removed::default();
    for pointer in &gone {
        if !is_trial {
            delete(&pointer.place)?;
        }
        removed.files.push(pointer.place.clone());
    }
    let mut freed = HashSet::new();
    for (path, size) in contents {
        let Some(_lock) = lock::try_free(&lock_of_blob(&path, &repo.locks)) else { continue };
        if !is_trial {
            delete(&path)?;
        }
        removed.n_byte += size;
        // Incomplete downloads are named by more than a digest.
        let digest = path.file_name().and_then(OsStr::to_str).and_then(Digest::of_digits);
        freed.extend(digest.filter(|_| size > 0));
    }
    count(&mut removed, &gone, &freed);
    if !is_trial {
        clean(repo, &gone, scope.is_all())?;
    }
    Ok(removed)
}

/// Adds the bytes of files without links, and of contents that stay, each once.
fn count(removed: &mut Removed, gone: &[Pointer], freed: &HashSet<Digest>) {
    removed.n_byte += gone.iter().filter(|pointer| !pointer.is_link).map(|pointer| pointer.size).sum::<u64>();
    let links = gone.iter().filter_map(|pointer| Some((pointer.digest.as_ref()?.digits(), pointer)));
    let kept: BTreeMap<&str, &Pointer> = links.collect();
    let kept = kept.values().filter(|pointer| pointer.digest.as_ref().is_some_and(|d| !freed.contains(d)));
    removed.n_kept += kept.map(|pointer| pointer.size).sum::<u64>();
}

/// Removes what is nothing without files: folders, the references and lists of emptied snapshots, and of an empty
/// repository the rest, unless another program is at work there.
fn clean(repo: &RepoFolder, gone: &[Pointer], is_all: bool) -> Result<(), HubError> {
    let commits: HashSet<&OsStr> = gone.iter().map(|pointer| pointer.commit.as_os_str()).collect();
    for commit in commits {
        let snapshot = repo.folder.join("snapshots").join(commit);
        remove_empty(&snapshot);
        if let Some(commit) = commit.to_str().filter(|_| !snapshot.exists()) {
            repo.forget(commit);
        }
    }
    if pointers(&repo.folder)?.iter().any(|pointer| !(is_all && pointer.is_elsewhere)) {
        return Ok(());
    }
    let blobs = repo.folder.join("blobs");
    // A folder with blobs or parts stays by itself.
    let _ = std::fs::remove_dir(&blobs);
    let failed = |source| HubError::File { path: repo.folder.clone(), source };
    if !blobs.exists() || is_all && !repo.is_locked()? {
        return std::fs::remove_dir_all(&repo.folder).map_err(failed);
    }
    Ok(())
}

/// Blobs that are not named, with the bytes that their removal frees. Incomplete downloads are no blobs.
///
/// # Errors
/// [`HubError::File`].
pub(super) fn unnamed_blobs(
    folder: &Path,
    named: &HashSet<&Digest>,
) -> Result<Vec<(PathBuf, u64)>, HubError> {
    let folder = folder.join("blobs");
    let entries = walk::entries(&folder).map_err(|source| HubError::File { path: folder.clone(), source })?;
    let unnamed = entries.into_iter().filter_map(|(name, _)| {
        Digest::of_digits(name.to_str()?).filter(|digest| !named.contains(digest))?;
        let path = folder.join(name);
        Some((size_of_own(&path)?, path))
    });
    Ok(unnamed.map(|(size, path)| (path, size)).collect())
}

/// Bytes that the removal of a blob frees: none for a link into the folder that repositories share.
fn size_of_own(blob: &Path) -> Option<u64> {
    let found = std::fs::symlink_metadata(blob).ok()?;
    Some(if found.file_type().is_symlink() { 0 } else { found.len() })
}

/// Removes folders without files, from the deepest on. Links to folders are files.
fn remove_empty(folder: &Path) {
    // Folders that cannot be read, or have files, stay by themselves.
    for (name, is_folder) in walk::entries(folder).unwrap_or_default() {
        if is_folder {
            remove_empty(&folder.join(name));
        }
    }
    let _ = std::fs::remove_dir(folder);
}
