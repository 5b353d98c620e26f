//! Limits of what a key may ask for, by time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::error::{ApiError, Kind};

const MINUTE: f64 = 60.0;

/// Limits of each key; `None` for none.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLimits {
    /// Requests for answers that run or wait at once.
    pub requests: Option<u32>,
    /// Requests for answers in a minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens of prompts and answers in a minute. They count when an answer ends: a key that has used more waits until
    /// that is made up for.
    pub tokens_per_minute: Option<u32>,
}

/// An amount that grows with time up to that of a minute. It may be overdrawn.
#[derive(Copy, Clone, Debug)]
struct Bucket {
    level: f64,
    last: Instant,
}

impl Bucket {
    fn full(size: u32, now: Instant) -> Bucket {
        Bucket { level: f64::from(size), last: now }
    }

    fn fill(&mut self, size: u32, now: Instant) {
        let time = now.saturating_duration_since(self.last).as_secs_f64();
        self.level = (self.level + time * f64::from(size) / MINUTE).min(f64::from(size));
        self.last = now;
    }

    /// The time until so much is there.
    fn wait(&self, amount: f64, size: u32) -> Option<Duration> {
        let missing = amount - self.level;
        (missing > 0.0).then(|| Duration::from_secs_f64(missing * MINUTE / f64::from(size.max(1))))
    }
}

/// The use that a key has made of its limits.
#[derive(Clone, Debug, Default)]
struct Use {
    n_open: u32,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

/// All keys that have asked.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    limits: Mutex<KeyLimits>,
    uses: Mutex<HashMap<u64, Use>>,
}

/// A request that counts for its key until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    limits: Arc<Limits>,
    key: u64,
    n_token: usize,
}

impl Counted {
    /// Tokens that it has used.
    pub(crate) fn used(&mut self, n_token: usize) {
        self.n_token += n_token;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.limits.ended(self.key, self.n_token, Instant::now());
    }
}

impl Limits {
    pub(crate) fn new(limits: KeyLimits) -> Limits {
        Limits { limits: Mutex::new(limits), uses: Mutex::default() }
    }

    /// Limits in force.
    fn limits(&self) -> KeyLimits {
        *self.limits.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Puts other limits in force.
    pub(crate) fn set(&self, limits: KeyLimits) {
        *self.limits.lock().unwrap_or_else(|e| e.into_inner()) = limits;
    }

    /// Counts a request of a key.
    ///
    /// # Errors
    /// [`Kind::Limit`] if it is one too many, with the time after which it is not.
    pub(crate) fn begin(self: &Arc<Self>, key: u64) -> Result<Counted, ApiError> {
        self.take(key, Instant::now())?;
        Ok(Counted { limits: self.clone(), key, n_token: 0 })
    }

    fn take(&self, key: u64, now: Instant) -> Result<(), ApiError> {
        let mut uses = self.uses.lock().unwrap_or_else(|e| e.into_inner());
        let (used, limits) = (uses.entry(key).or_default(), self.limits());
        if let Some(limit) = limits.requests.filter(|limit| used.n_open >= *limit) {
            return Err(refusal(limit, "requests at once", Duration::from_secs(1)));
        }
        if let Some(limit) = limits.tokens_per_minute {
            let bucket = used.tokens.get_or_insert_with(|| Bucket::full(limit, now));
            bucket.fill(limit, now);
            if let Some(wait) = bucket.wait(1.0, limit) {
                return Err(refusal(limit, "tokens a minute", wait));
            }
        }
        if let Some(limit) = limits.requests_per_minute {
            let bucket = used.requests.get_or_insert_with(|| Bucket::full(limit, now));
            bucket.fill(limit, now);
            if let Some(wait) = bucket.wait(1.0, limit) {
                return Err(refusal(limit, "requests a minute", wait));
            }
            bucket.level -= 1.0;
        }
        used.n_open += 1;
        Ok(())
    }

    fn ended(&self, key: u64, n_token: usize, now: Instant) {
        let mut uses = self.uses.lock().unwrap_or_else(|e| e.into_inner());
        let Some(used) = uses.get_mut(&key) else { return };
        used.n_open = used.n_open.saturating_sub(1);
        if let (Some(limit), Some(bucket)) = (self.limits().tokens_per_minute, &mut used.tokens) {
            bucket.fill(limit, now);
            bucket.level -= n_token as f64;
        }
    }
}

fn refusal(limit: u32, what: &str, wait: Duration) -> ApiError {
    let message = format!("this key may have {limit} {what}");
    ApiError::new(Kind::Limit, message).retry(wait.as_secs_f64().ceil().max(1.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(limits: KeyLimits) -> Limits {
        Limits::new(limits)
    }

    #[test]
    fn requests_of_a_minute_come_back_with_time() {
        let limits = limits(KeyLimits { requests_per_minute: Some(2), ..KeyLimits::default() });
        let now = Instant::now();
        assert!(limits.take(1, now).is_ok() && limits.take(1, now).is_ok());
        let error = limits.take(1, now).unwrap_err();
        assert_eq!((error.kind, error.retry_after), (Kind::Limit, Some(30)));
        assert!(limits.take(2, now).is_ok(), "another key has its own");
        assert!(limits.take(1, now + Duration::from_secs(29)).is_err());
        assert!(limits.take(1, now + Duration::from_secs(30)).is_ok());
        assert!(limits.take(1, now + Duration::from_secs(3600)).is_ok());
        assert!(limits.take(1, now + Duration::from_secs(3600)).is_ok());
        assert!(limits.take(1, now + Duration::from_secs(3600)).is_err(), "no more than a minute's are kept");
    }

    #[test]
    fn other_limits_hold_from_the_next_request_on() {
        let of = |n| KeyLimits { requests_per_minute: n, ..KeyLimits::default() };
        let (limits, now) = (limits(of(Some(1))), Instant::now());
        assert!(limits.take(1, now).is_ok() && limits.take(1, now).is_err());
        limits.set(of(None));
        assert!(limits.take(1, now).is_ok());
        limits.set(of(Some(120)));
        assert!(limits.take(1, now).is_err(), "what was used stays so");
        assert!(limits.take(1, now + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn tokens_are_made_up_for_after_the_answer() {
        let limits = limits(KeyLimits { tokens_per_minute: Some(60), ..KeyLimits::default() });
        let now = Instant::now();
        limits.take(1, now).unwrap();
        limits.ended(1, 90, now);
        let error = limits.take(1, now).unwrap_err();
        assert_eq!(error.retry_after, Some(31), "{}", error.message);
        assert!(limits.take(1, now + Duration::from_secs(31)).is_ok());
    }

    #[test]
    fn places_are_free_when_requests_end() {
        let limits = Arc::new(limits(KeyLimits { requests: Some(1), ..KeyLimits::default() }));
        let first = limits.begin(1).unwrap();
        assert_eq!(limits.begin(1).unwrap_err().kind, Kind::Limit);
        drop(first);
        assert!(limits.begin(1).is_ok());
    }
}
