//! Deadlines by key: the earliest is what a state machine asks its caller to wake it for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Deadlines, at most one for each key.
#[derive(Clone, Debug)]
pub(crate) struct Timers<K> {
    by_time: BTreeSet<(Duration, K)>,
    by_key: BTreeMap<K, Duration>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_key: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Timers<K> {
    /// Sets the deadline of a key, in place of an earlier one.
    pub(crate) fn set(&mut self, key: K, at: Duration) {
        self.cancel(key);
        self.by_key.insert(key, at);
        self.by_time.insert((at, key));
    }

    /// Sets the deadline of a key unless it has an earlier one.
    pub(crate) fn set_by(&mut self, key: K, at: Duration) {
        if self.by_key.get(&key).is_none_or(|&before| at < before) {
            self.set(key, at);
        }
    }

    pub(crate) fn cancel(&mut self, key: K) {
        if let Some(at) = self.by_key.remove(&key) {
            self.by_time.remove(&(at, key));
        }
    }

    /// Takes a key whose deadline has come, the earliest first.
    pub(crate) fn due(&mut self, now: Duration) -> Option<K> {
        let &(at, key) = self.by_time.first()?;
        if at > now {
            return None;
        }
        self.cancel(key);
        Some(key)
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.by_time.first().map(|(at, _)| *at)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_in_order_and_once() {
        let ms = Duration::from_millis;
        let mut timers = Timers::default();
        timers.set('a', ms(5));
        timers.set('b', ms(3));
        timers.set('a', ms(2));
        timers.set_by('b', ms(9));
        timers.set('c', ms(1));
        timers.cancel('c');
        assert_eq!((timers.next(), timers.len()), (Some(ms(2)), 2));
        assert_eq!(timers.due(ms(1)), None);
        assert_eq!([timers.due(ms(4)), timers.due(ms(4)), timers.due(ms(4))], [Some('a'), Some('b'), None]);
        assert_eq!(timers.next(), None);
    }
}
