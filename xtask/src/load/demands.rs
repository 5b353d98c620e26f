//! Requirements of each mix, and how a server meets them.

use std::time::Duration;

use serde_json::{Value, json};

use super::mix::Mix;
use super::numbers::Summary;

/// A number that has a bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Demand {
    what: &'static str,
    found: f64,
    bound: Bound,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Bound {
    Most(f64),
    Least(f64),
}

/// The burst of a measurement.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Burst {
    /// Requests a second that the users got answered.
    pub(crate) capacity: f64,
    pub(crate) rate: f64,
    pub(crate) seconds: f64,
    /// From its end until a request is served as before.
    pub(crate) recovery: Option<Duration>,
}

impl Burst {
    pub(crate) fn json(&self) -> Value {
        json!({
            "capacity": self.capacity,
            "rate": self.rate,
            "seconds": self.seconds,
            "recovery_ms": self.recovery.map(|time| time.as_secs_f64() * 1e3),
        })
    }

    pub(crate) fn line(&self) -> String {
        let Burst { capacity, rate, seconds, recovery } = self;
        let served = match recovery {
            Some(time) => format!("serves as before after {:.1} s", time.as_secs_f64()),
            None => "does not serve as before within a minute".into(),
        };
        format!("burst: {rate:.1} requests/s for {seconds:.0} s, answered {capacity:.1}/s before; {served}")
    }
}

/// The requirements of a mix. `alone` has the times of what they are compared with, if it was measured.
pub(crate) fn demands(mix: Mix, s: &Summary, alone: Option<&Summary>, burst: Option<&Burst>) -> Vec<Demand> {
    let most = |what, found, most| Demand { what, found, bound: Bound::Most(most) };
    let mut all = vec![most("requests without a whole answer", s.n_bad as f64, 0.0)];
    let ratio = |found: f64, alone: f64| found / alone.max(1e-9);
    match (mix, alone) {
        (Mix::C, Some(alone)) => {
            all.push(most("gap p99 by that of the short requests alone", ratio(s.gap[2], alone.gap[2]), 3.0));
        }
        (Mix::D, alone) => {
            let what = "cached part of what earlier turns computed";
            all.extend(s.cached_of_turns.map(|found| Demand { what, found, bound: Bound::Least(0.9) }));
            let what = "TTFT p50 of further turns by that of their new tokens alone";
            all.extend(alone.map(|alone| most(what, ratio(s.ttft[0], alone.ttft[0]), 1.3)));
        }
        _ => {}
    }
    let recovery = |burst: &Burst| burst.recovery.map_or(f64::INFINITY, |time| time.as_secs_f64());
    all.extend(
        burst.map(|burst| most("seconds after a burst until it serves as before", recovery(burst), 5.0)),
    );
    all
}

impl Demand {
    pub(crate) fn is_met(&self) -> bool {
        match self.bound {
            Bound::Most(most) => self.found <= most,
            Bound::Least(least) => self.found >= least,
        }
    }

    pub(crate) fn json(&self) -> Value {
        let bound = match self.bound {
            Bound::Most(most) => ("most", most),
            Bound::Least(least) => ("least", least),
        };
        let mut all = json!({"what": self.what, "found": self.found, "met": self.is_met()});
        all[bound.0] = bound.1.into();
        all
    }

    pub(crate) fn line(&self) -> String {
        let bound = match self.bound {
            Bound::Most(most) => format!("at most {most}"),
            Bound::Least(least) => format!("at least {least}"),
        };
        let met = if self.is_met() { "met" } else { "NOT MET" };
        format!("{met}: {}: {:.2}, {bound}", self.what, self.found)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::load::numbers::summary;

    fn found(ttft: f64, gap: f64, cached: Option<f64>) -> Summary {
        Summary {
            ttft: [ttft; 3],
            gap: [gap; 3],
            cached_of_turns: cached,
            ..summary(&[], &[], Instant::now(), 1)
        }
    }

    fn unmet(mix: Mix, s: &Summary, alone: Option<&Summary>, burst: Option<&Burst>) -> Vec<&'static str> {
        let all = demands(mix, s, alone, burst);
        all.iter().filter(|demand| !demand.is_met()).map(|demand| demand.what).collect()
    }

    #[test]
    fn short_requests_may_stall_three_times_as_long_beside_long_ones() {
        let alone = found(10.0, 5.0, None);
        assert!(unmet(Mix::C, &found(99.0, 15.0, None), Some(&alone), None).is_empty());
        assert_eq!(unmet(Mix::C, &found(1.0, 15.1, None), Some(&alone), None).len(), 1);
        assert_eq!(demands(Mix::C, &alone, None, None).len(), 1, "nothing to compare with");
    }

    #[test]
    fn agents_have_cached_turns_and_soon_a_first_token() {
        let alone = found(10.0, 5.0, None);
        assert!(unmet(Mix::D, &found(13.0, 9.0, Some(0.9)), Some(&alone), None).is_empty());
        assert_eq!(unmet(Mix::D, &found(14.0, 9.0, Some(0.89)), Some(&alone), None).len(), 2);
    }

    #[test]
    fn a_burst_is_over_after_five_seconds() {
        let burst = |recovery| Burst {
            capacity: 2.0,
            rate: 8.0,
            seconds: 10.0,
            recovery: Option::<u64>::map(recovery, Duration::from_secs),
        };
        let s = found(10.0, 5.0, None);
        assert!(unmet(Mix::F, &s, None, Some(&burst(Some(5)))).is_empty());
        assert_eq!(unmet(Mix::F, &s, None, Some(&burst(Some(6)))).len(), 1);
        assert_eq!(unmet(Mix::F, &Summary { n_bad: 1, ..s }, None, Some(&burst(None))).len(), 2);
        assert_eq!(burst(None).json()["recovery_ms"], Value::Null);
    }
}
