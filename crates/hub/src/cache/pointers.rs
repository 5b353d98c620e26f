//! The files of all snapshots of a repository, read for removals: an unreadable folder is an error, because a blob
//! that a hidden link names must stay.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::walk;
use crate::digest::Digest;
use crate::error::HubError;

/// A file or link of a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Pointer {
    /// Name of the folder of its snapshot: the commit.
    pub(super) commit: OsString,
    /// Path within the snapshot, with `/` between names; `None` if it is not UTF-8.
    pub(super) path: Option<String>,
    /// The file or link itself.
    pub(super) place: PathBuf,
    /// Digest that the target of a link is named by.
    pub(super) digest: Option<Digest>,
    pub(super) is_link: bool,
    /// It lies behind a snapshot that is a link to a folder elsewhere: it names blobs, but is not ours to remove.
    pub(super) is_elsewhere: bool,
    /// Size in bytes, behind links; 0 for a link to nothing.
    pub(super) size: u64,
}

/// The files of all snapshots in the folder of a repository.
///
/// # Errors
/// [`HubError::File`].
pub(super) fn pointers(folder: &Path) -> Result<Vec<Pointer>, HubError> {
    let snapshots = folder.join("snapshots");
    let failed = |source| HubError::File { path: snapshots.clone(), source };
    let mut pointers = Vec::new();
    for (commit, is_folder) in walk::entries(&snapshots).map_err(failed)? {
        let snapshot = snapshots.join(&commit);
        let failed = |source| HubError::File { path: snapshot.clone(), source };
        // A snapshot may be a link to another one, whose files come by themselves, or to any folder.
        if !is_folder && (!snapshot.is_dir() || is_sibling(&snapshot, &snapshots).map_err(failed)?) {
            continue;
        }
        for path in walk::all_files(&snapshot).map_err(failed)? {
            let pointer = pointer(&commit, &snapshot, &path).map_err(failed)?;
            pointers.push(Pointer { is_elsewhere: !is_folder, ..pointer });
        }
    }
    Ok(pointers)
}

/// True if a link leads to a folder in this one.
fn is_sibling(link: &Path, folder: &Path) -> io::Result<bool> {
    Ok(std::fs::canonicalize(link)?.parent() == Some(&std::fs::canonicalize(folder)?))
}

fn pointer(commit: &OsStr, snapshot: &Path, path: &Path) -> io::Result<Pointer> {
    let place = snapshot.join(path);
    let is_link = std::fs::symlink_metadata(&place)?.file_type().is_symlink();
    let target = if is_link { Some(std::fs::read_link(&place)?) } else { None };
    let digits = target.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
    let names: Option<Vec<&str>> = path.iter().map(OsStr::to_str).collect();
    Ok(Pointer {
        commit: commit.to_owned(),
        path: names.map(|names| names.join("/")),
        digest: digits.and_then(Digest::of_digits),
        is_link,
        is_elsewhere: false,
        size: std::fs::metadata(&place).map_or(0, |found| found.len()),
        place,
    })
}

/// Digests that pointers name.
pub(super) fn named<'p>(pointers: impl IntoIterator<Item = &'p Pointer>) -> HashSet<&'p Digest> {
    pointers.into_iter().filter_map(|pointer| pointer.digest.as_ref()).collect()
}
