//! Health of a worker: in service, under suspicion, or gone.

use std::time::Duration;

/// Hedges that won in a row before a worker is suspect.
const MISSED: u32 = 3;
/// Good canaries in a row that bring a worker back.
const GOOD: u32 = 3;
/// A PONG that is later makes a worker suspect.
pub(crate) const PONG_LATE: Duration = Duration::from_millis(2500);
/// A suspect that sends nothing for so long is down.
pub(crate) const SILENT: Duration = Duration::from_secs(5);
/// First and longest time between canaries that fail.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Time between good canaries.
const SOON: Duration = Duration::from_millis(20);

/// State of a worker.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// In service.
    Up,
    /// Gets canaries alone.
    Suspect,
}

/// Health of one worker. Its end, [`SILENT`] or a closed socket, is the hub's to notice.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    state: State,
    missed: u32,
    good: u32,
    backoff: Duration,
    /// When the next canary is due, if suspect.
    canary: Option<Duration>,
}

impl Default for Health {
    fn default() -> Self {
        Self { state: State::Up, missed: 0, good: 0, backoff: BACKOFF.0, canary: None }
    }
}

impl Health {
    /// True if the worker may get tasks.
    pub(crate) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// When the next canary is due; `None` while one is under way, or in service.
    pub(crate) fn canary_at(&self) -> Option<Duration> {
        self.canary
    }

    /// A hedge was faster. Returns true if the worker becomes suspect.
    pub(crate) fn missed(&mut self, now: Duration) -> bool {
        self.missed += 1;
        self.missed >= MISSED && self.suspect(now)
    }

    /// An answer came before any hedge.
    pub(crate) fn answered(&mut self) {
        self.missed = 0;
    }

    /// Puts the worker under suspicion; true if it was in service.
    pub(crate) fn suspect(&mut self, now: Duration) -> bool {
        let was_up = self.is_up();
        if was_up {
            (self.state, self.good, self.missed) = (State::Suspect, 0, 0);
            // The task that was missed may still be answered: not at once.
            self.canary = Some(now + self.backoff.min(BACKOFF.0) / 4);
        }
        was_up
    }

    /// A canary was sent.
    pub(crate) fn canary_sent(&mut self) {
        self.canary = None;
    }

    /// A canary came back right. Returns true if the worker is in service again.
    pub(crate) fn canary_good(&mut self, now: Duration) -> bool {
        if self.is_up() {
            return false;
        }
        self.good += 1;
        if self.good >= GOOD {
            self.state = State::Up;
            (self.canary, self.missed) = (None, 0);
            // Half of the way back: a worker that flaps waits longer each time, one that holds recovers.
            self.backoff = (self.backoff / 2).max(BACKOFF.0);
            return true;
        }
        self.canary = Some(now + SOON);
        false
    }

    /// A canary failed or did not come back: the next one waits twice as long.
    pub(crate) fn canary_failed(&mut self, now: Duration) {
        if !self.is_up() {
            self.good = 0;
            self.canary = Some(now + self.backoff);
            self.backoff = (self.backoff * 2).min(BACKOFF.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn three_misses_in_a_row_make_a_suspect_and_three_canaries_bring_it_back() {
        let mut health = Health::default();
        assert!(!health.missed(MS) && !health.missed(MS));
        health.answered();
        assert!(!health.missed(MS) && !health.missed(MS) && health.missed(MS));
        assert!(!health.is_up() && health.canary_at().is_some());
        assert!(!health.suspect(MS), "it is suspect already");
        health.canary_sent();
        assert_eq!(health.canary_at(), None);
        assert!(!health.canary_good(MS) && !health.canary_good(MS));
        assert!(health.canary_good(MS) && health.is_up());
        assert!(!health.canary_good(MS), "nothing to bring back");
    }

    #[test]
    fn failed_canaries_wait_from_1_to_60_seconds() {
        let mut health = Health::default();
        health.suspect(Duration::ZERO);
        let waits: Vec<u64> = (0..9)
            .map(|_| {
                health.canary_failed(Duration::ZERO);
                health.canary_at().unwrap().as_secs()
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert!(!health.canary_good(MS) && !health.canary_good(MS));
        health.canary_failed(MS);
        assert!(!health.canary_good(MS), "the count begins again");
    }
}
