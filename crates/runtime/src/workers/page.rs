//! Threads that a page starts: workers of its own with this module and its memory.

use std::sync::{Arc, OnceLock};

use super::team::Team;
pub use super::team::failures;

/// The threads of the page, once they were gathered.
static TEAM: OnceLock<Arc<Team>> = OnceLock::new();

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

/// The page's threads, or the caller alone.
pub(super) fn team() -> Arc<Team> {
    TEAM.get().cloned().unwrap_or_else(|| Arc::new(Team::of_page(1)))
}
