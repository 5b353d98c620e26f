//! How fast a model works, and when it last gave a sign of life.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::queue::Queue;

/// Weight of the newest answer in the means.
const NEWEST: f64 = 0.2;

/// The pace of a model.
#[derive(Debug)]
pub(crate) struct Pace {
    start: Instant,
    /// Milliseconds from the start to the last sign of life.
    last: AtomicU64,
    means: Mutex<Option<Means>>,
}

/// Means of the last answers.
#[derive(Copy, Clone, Debug)]
struct Means {
    /// Tokens of an answer.
    n_token: f64,
    /// Seconds for a token of a prompt or an answer, while others run beside it.
    each: f64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { start: Instant::now(), last: AtomicU64::new(0), means: Mutex::new(None) }
    }
}

impl Pace {
    /// Time since the last sign of life.
    pub(crate) fn silence(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }

    /// A sign of life.
    pub(crate) fn sign(&self) {
        self.last.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// An answer has ended that ran for this time.
    pub(crate) fn ended(&self, n_prompt: usize, n_token: usize, time: Duration) {
        let now =
            Means { n_token: n_token as f64, each: time.as_secs_f64() / (n_prompt + n_token).max(1) as f64 };
        let mut means = self.means.lock().unwrap_or_else(|e| e.into_inner());
        let mean = |old: f64, new: f64| old + NEWEST * (new - old);
        *means = Some(means.map_or(now, |old| Means {
            n_token: mean(old.n_token, now.n_token),
            each: mean(old.each, now.each),
        }));
    }

    /// Seconds after which a queue has room again: the tokens that wait, and those of their answers, at the measured
    /// speed of so many sequences. From 1 to 60.
    pub(crate) fn retry_after(&self, queue: &Queue, n_seq: u32) -> u64 {
        let Some(means) = *self.means.lock().unwrap_or_else(|e| e.into_inner()) else { return 1 };
        let n_token = queue.n_token() as f64 + queue.n_answer() as f64 * means.n_token;
        (n_token * means.each / f64::from(n_seq.max(1))).ceil().clamp(1.0, 60.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_takes_the_time_of_its_tokens() {
        let (pace, queue) = (Pace::default(), Queue::default());
        let wait = |n_token, n_answer| queue.add(vec![n_token; n_answer], 1, None).unwrap();
        let retry_after = |n_seq| pace.retry_after(&queue, n_seq);
        assert_eq!(retry_after(1), 1, "nothing is measured");
        // A hundred tokens in a second.
        pace.ended(60, 40, Duration::from_secs(1));
        assert_eq!(retry_after(1), 1, "nothing waits");
        let mut held = wait(160, 4);
        assert_eq!((queue.n_token(), retry_after(1), retry_after(4)), (640, 8, 2));
        held.pop();
        assert_eq!(retry_after(1), 6);
        let _more = wait(1000, 100);
        assert_eq!(retry_after(1), 60);
    }
}
