//! The number of files that a process may have open, which bounds its connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows as many as the system lets this process have. The usual limit of 1024 protects programs that wait for files
/// by numbers below that, and a thousand slow clients would reach it.
pub(super) fn allow_all() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!("the limit of open files stays at {:?}: {error}", limit.current);
    }
}
