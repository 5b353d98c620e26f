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
/// Time before the first canary.
const FIRST: Duration = Duration::from_millis(50);
/// A suspect that is heard again after so long gets a canary at once.
const AWAKE: Duration = Duration::from_secs(1);
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
    /// When the last miss was counted.
    missed_at: Duration,
    good: u32,
    backoff: Duration,
    /// When the next canary is due, if suspect.
    canary: Option<Duration>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            state: State::Up,
            missed: 0,
            missed_at: Duration::ZERO,
            good: 0,
            backoff: BACKOFF.0,
            canary: None,
        }
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

    /// A hedge was faster than a task sent at `sent`. Returns true if the worker becomes suspect. One pause of a worker
    /// delays all that it has in its queue: only a task that was sent after the last miss counts as another one.
    pub(crate) fn missed(&mut self, now: Duration, sent: Duration) -> bool {
        if self.missed > 0 && sent < self.missed_at {
            return false;
        }
        (self.missed, self.missed_at) = (self.missed + 1, now);
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
            self.canary = Some(now + FIRST);
        }
        was_up
    }

    /// A frame came after `silence`. Returns true if a canary is due now: the worker was stopped, and goes on.
    pub(crate) fn heard(&mut self, now: Duration, silence: Duration) -> bool {
        let is_awake = silence >= AWAKE && self.canary.is_some_and(|at| at > now);
        if is_awake {
            self.canary = Some(now);
        }
        is_awake
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
        assert!(!health.missed(MS, MS) && !health.missed(2 * MS, 2 * MS));
        health.answered();
        assert!(
            !health.missed(3 * MS, 3 * MS) && !health.missed(4 * MS, 4 * MS) && health.missed(5 * MS, 5 * MS)
        );
        assert!(!health.is_up() && health.canary_at().is_some());
        assert!(!health.suspect(MS), "it is suspect already");
        health.canary_sent();
        assert_eq!(health.canary_at(), None);
        assert!(!health.canary_good(MS) && !health.canary_good(MS));
        assert!(health.canary_good(MS) && health.is_up());
        assert!(!health.canary_good(MS), "nothing to bring back");
    }

    #[test]
    fn tasks_that_one_pause_delays_are_one_miss() {
        let mut health = Health::default();
        assert!((10..20).all(|at| !health.missed(at * MS, 9 * MS)));
        assert!(!health.missed(30 * MS, 21 * MS) && health.missed(40 * MS, 31 * MS));
    }

    #[test]
    fn a_suspect_that_goes_on_gets_a_canary_at_once() {
        let mut health = Health::default();
        health.suspect(Duration::ZERO);
        (0..4).for_each(|_| health.canary_failed(Duration::ZERO));
        assert!(!health.heard(MS, 20 * MS) && health.heard(MS, 3000 * MS));
        assert_eq!(health.canary_at(), Some(MS));
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
