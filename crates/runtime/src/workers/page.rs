//! Threads that a page starts: workers of its own with this module and its memory.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, atomic::Ordering};

use super::team::Team;

/// The threads of the page, once they were gathered.
static TEAM: OnceLock<Arc<Team>> = OnceLock::new();

/// Number of threads that ended by a panic.
static FAILURES: AtomicU32 = AtomicU32::new(0);

/// Makes loops of models that are loaded from now on wait for the help of `n` threads, of which the caller is one. The
/// others call [`work`], now or later: loops go on without those that do not come. Only the first call counts.
pub fn gather(n: usize) {
    TEAM.get_or_init(|| Arc::new(Team::of_page(n)));
}

/// Takes parts of loops, on a thread that the page has started; it does not return.
pub fn work() {
    if let Some(team) = TEAM.get() {
        team.serve();
    }
}

/// The word that counts threads that have failed. A panic ends a thread without another trace, so that the page has to
/// write down what it saw: the caller of a loop, which would wait forever, fails then, too.
pub fn failures() -> *const u32 {
    FAILURES.as_ptr()
}

/// The page's threads, or the caller alone.
pub(super) fn team() -> Arc<Team> {
    TEAM.get().cloned().unwrap_or_else(|| Arc::new(Team::of_page(1)))
}

/// # Panics
/// If a thread has failed.
pub(super) fn check() {
    assert!(FAILURES.load(Ordering::Relaxed) == 0, "a thread of the CPU has failed");
}
