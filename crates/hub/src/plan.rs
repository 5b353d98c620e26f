//! Plans: the files of a model, where they come from, and what of them is missing.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::digest::Digest;
use crate::name::{ModelName, RepoId};
use crate::select::Form;
use crate::tree::TreeFile;

/// A file of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Path within the repository, or the name of the file at an address.
    pub path: String,
    /// Size in bytes; unknown where a server does not say.
    pub size: Option<u64>,
    /// Digest that its contents must have, if one is known.
    pub digest: Option<Digest>,
    /// Bytes that are here already: all of them, or those of an interrupted download.
    pub n_present: u64,
    /// It is here as a whole.
    pub is_complete: bool,
}

impl PlannedFile {
    /// Bytes to fetch, as far as known.
    pub fn n_missing(&self) -> u64 {
        match self.is_complete {
            true => 0,
            false => self.size.unwrap_or(0).saturating_sub(self.n_present),
        }
    }
}

/// Origin of the files of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A repository of the hub.
    Hub {
        /// The repository.
        repo: RepoId,
        /// Branch, tag or commit that was asked for.
        revision: String,
        /// 40 hex digits.
        commit: String,
        /// All files of the commit.
        tree: Arc<[TreeFile]>,
    },
    /// An address; the folder of the cache for its files.
    Address {
        /// The folder.
        folder: PathBuf,
    },
}

/// The files of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The name that was asked for.
    pub name: ModelName,
    /// Kind of the model.
    pub form: Form,
    /// Origin of the files.
    pub origin: Origin,
    /// The files; the one to open first.
    pub files: Vec<PlannedFile>,
    /// The last of the files is the projector of the model.
    pub has_projector: bool,
}

impl Plan {
    /// Bytes of all files, as far as known.
    pub fn n_byte(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size.unwrap_or(0)))
    }

    /// Bytes to fetch, as far as known; contents that several files have count once.
    pub fn n_missing(&self) -> u64 {
        let mut seen = HashSet::new();
        let files = self.files.iter().filter(|file| {
            let digest = file.digest.as_ref();
            digest.is_none_or(|digest| seen.insert(digest))
        });
        files.fold(0, |sum, file| sum.saturating_add(file.n_missing()))
    }

    /// True if nothing must be fetched.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.is_complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_bytes_are_those_behind_the_parts() {
        let file = |size, n_present, is_complete| PlannedFile {
            path: "a".into(),
            size,
            digest: None,
            n_present,
            is_complete,
        };
        let plan = Plan {
            name: ModelName::Path("a".into()),
            form: Form::Gguf,
            origin: Origin::Address { folder: "x".into() },
            files: vec![
                file(Some(10), 4, false),
                file(Some(7), 7, true),
                file(None, 3, false),
                file(Some(u64::MAX), 0, false),
            ],
            has_projector: false,
        };
        assert_eq!(plan.files.iter().map(PlannedFile::n_missing).collect::<Vec<_>>(), [6, 0, 0, u64::MAX]);
        assert_eq!((plan.n_byte(), plan.n_missing(), plan.is_complete()), (u64::MAX, u64::MAX, false));
        // Twins come once.
        let of = |digits: &str| PlannedFile {
            digest: Some(Digest::Git(digits.into())),
            ..file(Some(10), 4, false)
        };
        let plan = Plan { files: vec![of("a"), of("b"), of("a")], ..plan };
        assert_eq!((plan.n_byte(), plan.n_missing()), (30, 12));
    }
}
