//! Events: what a download does, for progress and logs.

use std::path::PathBuf;
use std::time::Duration;

use crate::digest::Digest;
use crate::plan::Plan;

/// Something that happened; files are indices into the plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The files of a model are known.
    Planned(Plan),
    /// A file begins, or goes on behind the bytes of an earlier download.
    Started {
        /// The file.
        file: usize,
        /// Bytes that are here.
        n_present: u64,
    },
    /// Bytes of a file came.
    Progress {
        /// The file.
        file: usize,
        /// Bytes that are here.
        n_present: u64,
        /// Its size, if known.
        size: Option<u64>,
    },
    /// Something is waited for.
    Waiting {
        /// The reason.
        reason: Wait,
        /// The time, if known.
        time: Option<Duration>,
    },
    /// A file has the announced digest.
    Verified {
        /// The file.
        file: usize,
        /// The digest.
        digest: Digest,
    },
    /// A file is in the cache.
    Done {
        /// The file.
        file: usize,
        /// Its place.
        path: PathBuf,
        /// It was there before.
        was_cached: bool,
    },
}

/// The reason of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Another program downloads the same file: the lock that it holds.
    Lock(PathBuf),
    /// The server limits requests.
    Server,
    /// A try failed: its message.
    Retry(String),
}
