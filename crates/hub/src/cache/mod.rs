//! The cache on disk, in the layout that huggingface_hub and llama.cpp share.
//!
//! ```text
//! <cache>/models--org--name/refs/<branch>              the commit, 40 hex digits
//!         snapshots/<commit>/<path>                    link to ../../blobs/<digest>, or the file itself
//!         blobs/<digest>                               contents; <digest>.chaski-part while they are incomplete
//!         trees/<commit>.json                          list of all files of the commit
//! <cache>/.locks/models--org--name/<digest>.lock
//! ```

mod address;
mod incomplete;
mod link;
mod list;
mod pointers;
mod prune;
mod remove;
mod tree_file;
mod verify;
mod walk;

use std::path::{Path, PathBuf};

use crate::config::Links;
use crate::digest::Digest;
use crate::download::part;
use crate::error::HubError;
use crate::lock::{self, Lock};
use crate::name::RepoId;
use crate::tree::{TreeFile, is_commit};

pub use list::{CachedFile, CachedModel, CachedRevision, Place};
pub use prune::Pruned;
pub use remove::Removed;
pub use verify::{Verdict, Verified};

pub(crate) use address::{ADDRESS_FILE, own_file};
pub(crate) use list::{address_files, commits, list, lm_studio, repositories};
pub(crate) use prune::prune;
pub(crate) use remove::{Scope, remove};
pub(crate) use verify::{suspects, verify};
pub(crate) use walk::files as files_below;

/// Folder of locks within the cache.
const LOCKS: &str = ".locks";

/// The cache.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    pub(crate) root: PathBuf,
    links: Links,
}

impl Cache {
    pub(crate) fn new(root: PathBuf, links: Links) -> Self {
        Cache { root, links }
    }

    /// The folder of a repository, which may not exist.
    pub(crate) fn repo(&self, repo: &RepoId) -> RepoFolder {
        RepoFolder {
            folder: self.root.join(repo.folder()),
            locks: self.root.join(LOCKS).join(repo.folder()),
            links: self.links,
        }
    }

    /// Makes the cache's folder, with the tag by which backup programs leave it out.
    ///
    /// # Errors
    /// [`HubError::File`].
    pub(crate) fn create(&self) -> Result<(), HubError> {
        create_folder(&self.root)?;
        let tag = self.root.join("CACHEDIR.TAG");
        if !tag.exists() {
            let text =
                "Signature: 8a477f597d28d172789f06886806bc55\n# Models; see https://bford.info/cachedir/\n";
            // A convenience for backups alone.
            let _ = std::fs::write(tag, text);
        }
        Ok(())
    }
}

/// The folder of a repository in the cache.
#[derive(Clone, Debug)]
pub(crate) struct RepoFolder {
    pub(crate) folder: PathBuf,
    locks: PathBuf,
    links: Links,
}

impl RepoFolder {
    /// The commit of a revision, as the last program saw it.
    pub(crate) fn commit_of(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_ascii_lowercase());
        }
        let text = std::fs::read_to_string(self.folder.join("refs").join(revision)).ok()?;
        let commit = text.trim();
        is_commit(commit).then(|| commit.to_owned())
    }

    /// Records the commit of a revision. A cache that cannot be written keeps the old one.
    pub(crate) fn set_commit(&self, revision: &str, commit: &str) {
        if is_commit(revision) || self.commit_of(revision).as_deref() == Some(commit) {
            return;
        }
        let path = self.folder.join("refs").join(revision);
        let folder = path.parent().expect("a reference is in a folder");
        let _ = std::fs::create_dir_all(folder).and_then(|()| part::write_whole(&path, commit.as_bytes()));
    }

    pub(crate) fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// The place of a file in a snapshot.
    pub(crate) fn pointer(&self, commit: &str, path: &str) -> PathBuf {
        path.split('/').fold(self.snapshot(commit), |folder, name| folder.join(name))
    }

    /// The place of contents.
    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.folder.join("blobs").join(digest.digits())
    }

    /// The place of contents that are not whole.
    pub(crate) fn part(&self, digest: &Digest) -> PathBuf {
        self.folder.join("blobs").join(format!("{}{}", digest.digits(), part::ENDING))
    }

    pub(crate) fn lock(&self, digest: &Digest) -> PathBuf {
        self.locks.join(format!("{}.lock", digest.digits()))
    }

    /// True if another program holds the lock of any of its files.
    ///
    /// # Errors
    /// [`HubError::File`].
    fn is_locked(&self) -> Result<bool, HubError> {
        Ok(take_locks(&self.locks)?.is_none())
    }

    /// Removes the list of a commit, and the references to it. Those that cannot be removed do no harm.
    fn forget(&self, commit: &str) {
        let _ = std::fs::remove_file(self.folder.join("trees").join(format!("{commit}.json")));
        let refs = self.folder.join("refs");
        for name in walk::files(&refs) {
            if self.commit_of(&name).as_deref() == Some(commit) {
                let _ = std::fs::remove_file(refs.join(name));
            }
        }
    }

    /// All files of a commit as the hub listed them, if some program kept the list.
    pub(crate) fn tree(&self, commit: &str) -> Option<Vec<TreeFile>> {
        tree_file::read(&self.folder.join("trees").join(format!("{commit}.json")))
    }

    /// Keeps the list of a commit, in place of a damaged one. A cache that cannot be written does without.
    pub(crate) fn set_tree(&self, commit: &str, files: &[TreeFile]) {
        let path = self.folder.join("trees").join(format!("{commit}.json"));
        if tree_file::is_damaged(&path) {
            let folder = path.parent().expect("a list is in a folder");
            let _ = std::fs::create_dir_all(folder)
                .and_then(|()| part::write_whole(&path, &tree_file::write(files)));
        }
    }

    /// The files of a snapshot that are here, with the digests that their links tell.
    pub(crate) fn present(&self, commit: &str) -> Vec<TreeFile> {
        let snapshot = self.snapshot(commit);
        let file = |path: String| {
            let place = self.pointer(commit, &path);
            let size = std::fs::metadata(&place).ok()?.len();
            Some(TreeFile { digest: link::digest(&place), path, size, oid: String::new(), xet_hash: None })
        };
        walk::files(&snapshot).into_iter().filter_map(file).collect()
    }

    /// A file of a snapshot, if it is here with this size.
    pub(crate) fn find(&self, commit: &str, path: &str, size: Option<u64>) -> Option<PathBuf> {
        let place = self.pointer(commit, path);
        is_file_of(&place, size).then_some(place)
    }

    /// True if contents are here with this size.
    pub(crate) fn has_blob(&self, digest: &Digest, size: Option<u64>) -> bool {
        is_file_of(&self.blob(digest), size)
    }

    /// Puts contents into a snapshot: a link, or the file where there are no links.
    ///
    /// # Errors
    /// [`HubError::File`].
    pub(crate) fn link(
        &self,
        digest: &Digest,
        commit: &str,
        path: &str,
        is_new: bool,
    ) -> Result<PathBuf, HubError> {
        let pointer = self.pointer(commit, path);
        create_folder(pointer.parent().expect("a file is in a folder"))?;
        let up = "../".repeat(2 + path.matches('/').count());
        let target = format!("{up}blobs/{}", digest.digits());
        link::place(&self.blob(digest), &pointer, Path::new(&target), is_new, self.links)
            .map_err(|source| HubError::File { path: pointer.clone(), source })?;
        Ok(pointer)
    }

    /// Copies a file into a snapshot, for contents that two files have where there are no links.
    ///
    /// # Errors
    /// [`HubError::File`].
    pub(crate) fn copy(&self, from: &Path, commit: &str, path: &str) -> Result<PathBuf, HubError> {
        let pointer = self.pointer(commit, path);
        create_folder(pointer.parent().expect("a file is in a folder"))?;
        link::place(from, &pointer, Path::new(""), false, Links::Never)
            .map_err(|source| HubError::File { path: pointer.clone(), source })?;
        Ok(pointer)
    }

    /// Puts contents over damaged ones in a snapshot, once they are whole and verified in a part.
    ///
    /// # Errors
    /// [`HubError::File`].
    pub(crate) fn replace(
        &self,
        part: &Path,
        digest: &Digest,
        commit: &str,
        path: &str,
    ) -> Result<PathBuf, HubError> {
        let pointer = self.pointer(commit, path);
        let failed = |source| HubError::File { path: pointer.clone(), source };
        if std::fs::symlink_metadata(&pointer).is_ok_and(|found| found.is_file()) {
            part::put(part, &pointer)?;
            return Ok(pointer);
        }
        part::put(part, &self.blob(digest))?;
        // A link to another blob is none to this one.
        if link::digest(&pointer).is_some_and(|named| named != *digest) {
            std::fs::remove_file(&pointer).map_err(failed)?;
        }
        self.link(digest, commit, path, true)
    }
}

/// Takes all locks in a folder; `None` if another program holds one.
///
/// # Errors
/// [`HubError::File`].
pub(crate) fn take_locks(folder: &Path) -> Result<Option<Vec<Lock>>, HubError> {
    let failed = |source| HubError::File { path: folder.to_owned(), source };
    let names = walk::entries(folder).map_err(failed)?.into_iter().map(|(name, _)| folder.join(name));
    let locks = names.filter(|path| path.extension().is_some_and(|ending| ending == "lock"));
    Ok(locks.map(|path| lock::try_free(&path)).collect())
}

/// True for a file, or a link to one, of this size.
pub(crate) fn is_file_of(path: &Path, size: Option<u64>) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && size.is_none_or(|size| size == found.len()))
}

/// # Errors
/// [`HubError::File`].
pub(crate) fn create_folder(path: &Path) -> Result<(), HubError> {
    std::fs::create_dir_all(path).map_err(|source| HubError::File { path: path.to_owned(), source })
}
