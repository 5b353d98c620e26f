//! Verification: every file that has a digest is hashed.

use std::collections::HashSet;
use std::path::PathBuf;

use super::{RepoFolder, Scope, link, walk};
use crate::digest::Digest;
use crate::download::hasher;
use crate::error::HubError;
use crate::job::Job;
use crate::select;

/// The state of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its contents are the announced ones.
    Intact,
    /// Its contents are others.
    Damaged {
        /// The announced digest.
        expected: Digest,
        /// The digest of what is here.
        found: Digest,
    },
    /// A link to nothing, or a part of a split set of which others are here.
    Missing,
    /// No digest is known: the file lies in a snapshot without links and without a list.
    Unknown,
}

/// A verified file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The model's name.
    pub name: String,
    /// Path within the repository.
    pub path: String,
    /// The commit.
    pub commit: String,
    /// Size in bytes.
    pub size: u64,
    /// Its state.
    pub verdict: Verdict,
}

/// A file to verify.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub(crate) commit: String,
    pub(crate) path: String,
    pub(crate) place: PathBuf,
    pub(crate) size: u64,
    pub(crate) digest: Option<Digest>,
}

/// The files of snapshots that are meant, with missing parts of split sets; contents that several of them name, once.
pub(crate) fn suspects(repo: &RepoFolder, scope: &Scope) -> Vec<Suspect> {
    let mut seen = HashSet::new();
    let mut suspects = Vec::new();
    for commit in walk::folders(&repo.folder.join("snapshots")) {
        let tree = repo.tree(&commit).unwrap_or_default();
        let mut paths = select::with_parts(walk::files(&repo.snapshot(&commit)));
        paths.retain(|path| scope.has(commit.as_ref(), Some(path)));
        for path in paths {
            let place = repo.pointer(&commit, &path);
            let listed = tree.iter().find(|file| file.path == path);
            let digest = listed.and_then(|file| file.digest.clone()).or_else(|| link::digest(&place));
            let is_new = link::digest(&place).is_none_or(|digest| seen.insert(digest));
            let size = std::fs::metadata(&place).map_or(0, |found| found.len());
            if is_new {
                suspects.push(Suspect { commit: commit.clone(), path, place, size, digest });
            }
        }
    }
    suspects
}

/// Hashes a file.
///
/// # Errors
/// [`HubError::File`], [`HubError::Interrupted`].
pub(crate) fn verify(suspect: &Suspect, job: &Job, tell: impl FnMut(u64)) -> Result<Verdict, HubError> {
    if !suspect.place.exists() {
        return Ok(Verdict::Missing);
    }
    let Some(expected) = &suspect.digest else { return Ok(Verdict::Unknown) };
    let found = hasher::of_file(&suspect.place, expected, job, tell)?;
    match found == *expected {
        true => Ok(Verdict::Intact),
        false => Ok(Verdict::Damaged { expected: expected.clone(), found }),
    }
}
