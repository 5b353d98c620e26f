//! Number of tokens chosen per step between readbacks.

use std::time::Duration;

use web_time::Instant;

/// Duration of a step: a new prompt waits for the steps under way, and text comes in pieces of it. A readback takes
/// some 0.1 ms beside the work of the next step; in browsers several.
const STEP_TIME: Duration = Duration::from_millis(if cfg!(target_arch = "wasm32") { 25 } else { 5 });
/// Maximum number of tokens per sequence and step.
const MAX_REPEAT: u32 = 16;

/// Adapts the repetitions of a step to the device's speed: more on fast devices, to amortise readbacks.
#[derive(Debug)]
pub(super) struct Pace {
    repeat: u32,
    /// Start of the current busy period of the device.
    busy_since: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Pace { repeat: 1, busy_since: Instant::now() }
    }

    /// Maximum number of repetitions of the next step.
    pub(super) fn repeat(&self, asked: Option<u32>) -> u32 {
        asked.map_or(self.repeat, |n| n.clamp(1, MAX_REPEAT))
    }

    /// Records a step submitted to an idle device.
    pub(super) fn begin(&mut self, now: Instant) {
        self.busy_since = now;
    }

    /// Records that a step was read, with `n` repetitions; `None` for a step that could not repeat. Returns its time.
    pub(super) fn read(&mut self, n: Option<u32>, now: Instant) -> Duration {
        let took = now - std::mem::replace(&mut self.busy_since, now);
        let Some(n) = n else { return took };
        let expected = took / n.max(1) * self.repeat;
        if expected * 2 <= STEP_TIME {
            self.repeat = (self.repeat * 2).min(MAX_REPEAT);
        } else if expected > STEP_TIME * 5 / 4 {
            self.repeat = (self.repeat / 2).max(1);
        }
        took
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The repetitions after `n_step` steps that take `per_token` for each token.
    fn after(n_step: usize, pace: &mut Pace, per_token: Duration) -> u32 {
        for _ in 0..n_step {
            let n = pace.repeat(None);
            let now = pace.busy_since + per_token * n;
            pace.read(Some(n), now);
        }
        pace.repeat(None)
    }

    #[test]
    fn steps_take_about_as_long_whatever_a_token_takes() {
        let mut pace = Pace::new();
        assert_eq!(after(9, &mut pace, STEP_TIME / 250), 16);
        assert_eq!(after(9, &mut pace, STEP_TIME * 2 / 5), 2);
        assert_eq!(after(9, &mut pace, STEP_TIME * 3), 1);
        assert_eq!(after(9, &mut pace, STEP_TIME / 4), 4);
    }

    #[test]
    fn steps_that_cannot_repeat_and_pauses_count_for_nothing() {
        let mut pace = Pace::new();
        assert_eq!(after(9, &mut pace, STEP_TIME / 25), 16);
        let later = pace.busy_since + Duration::from_secs(1);
        pace.read(None, later);
        pace.begin(later + Duration::from_secs(1));
        pace.read(Some(16), later + Duration::from_secs(1) + STEP_TIME);
        assert_eq!((pace.repeat(None), pace.repeat(Some(3)), pace.repeat(Some(0))), (16, 3, 1));
    }
}
