//! Hedging: when a second worker is asked for an answer that another one owes.
//!
//! A late hedge is sent when an answer is later than a quantile of answer over prediction, and a [`Bucket`] of tokens
//! bounds their number. A hedge at once is sent together with the first task, to a replica that is idle. Which of them
//! pays off follows from the tail of the distribution: late hedges cut a heavy tail for few extra tasks, against a
//! light one only the faster of two answers helps ([`Tail`]).

use crate::estimate::Histogram;

/// Most tokens in a [`Bucket`].
const CAP: f64 = 32.0;
/// Answers of a layer that are waited for together, in the comparison of policies.
const FAN_OUT: i32 = 4;
/// A late hedge is enough if it brings this part of the gain of two tasks at once: against a light tail it brings less
/// than a tenth, and a few hundred samples of a heavy one may have little of its tail.
const ENOUGH: f64 = 0.25;
/// Hedges at once must shorten a layer by this part.
const WORTH: f64 = 0.1;
/// Samples before the tail is judged.
const LEAST_SAMPLES: f64 = 100.0;

/// Policy of hedging.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Hedging {
    /// A task is repeated only if its worker fails.
    Never,
    /// Late hedges within the budget, hedges at once where they cost nobody and the tail is light.
    #[default]
    Auto,
    /// Every task goes to two workers at once.
    Always,
}

/// Weight of a new sample of the tokens that a late task wants.
const GAIN: f64 = 1.0 / 64.0;
/// Tokens below which only later tasks are hedged, down to half of them.
const SCARCE: f64 = 8.0;

/// Token bucket: each task adds a part of a token, each late hedge takes a whole one.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    refill: f64,
    /// Tokens that a late task wants on average: the copies of its parts may be on several workers.
    per_late: f64,
}

impl Bucket {
    /// A full bucket that gains `budget` of a token with each task.
    pub(crate) fn new(budget: f64) -> Self {
        Self { tokens: CAP, refill: budget, per_late: 1.0 }
    }

    /// Notes the tokens that a late task wants.
    pub(crate) fn wanted(&mut self, n: usize) {
        self.per_late += GAIN * (n.max(1) as f64 - self.per_late);
    }

    /// The part of the tasks that may be late: as many as there are tokens for. If few are left, those that are later
    /// should have them.
    pub(crate) fn late_part(&self) -> f64 {
        self.refill / self.per_late * (self.tokens / SCARCE).clamp(0.5, 1.0)
    }

    /// Counts a task.
    pub(crate) fn refill(&mut self) {
        self.tokens = (self.tokens + self.refill).min(CAP);
    }

    /// Takes a token if there is one.
    pub(crate) fn take(&mut self) -> bool {
        let is_enough = self.tokens >= 1.0;
        self.tokens -= if is_enough { 1.0 } else { 0.0 };
        is_enough
    }
}

/// Shape of the tail of answer times.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Late answers are not much later than others: a hedge helps only at once.
    Light,
    /// A few answers are very late: a late hedge brings most of the gain.
    Heavy,
    /// Neither helps much, or there are too few samples.
    #[default]
    Unknown,
}

/// The tail that is believed: two judgements in a row must say the same, since some hundred samples have few of a tail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Belief {
    believed: Tail,
    last: Tail,
}

impl Belief {
    /// The tail.
    pub(crate) fn tail(&self) -> Tail {
        self.believed
    }

    /// Takes a judgement.
    pub(crate) fn add(&mut self, judged: Tail) {
        if judged == self.last {
            self.believed = judged;
        }
        self.last = judged;
    }
}

/// Judges the tail of a distribution by the expected time of a layer of several answers: without hedges, with late ones
/// at the `1 - budget` quantile, and with two tasks at once, as in eq. 18 of MoEx.
pub(crate) fn tail(answers: &Histogram, budget: f64) -> Tail {
    if answers.weight() < LEAST_SAMPLES {
        return Tail::Unknown;
    }
    let delay = answers.quantile(1.0 - budget);
    let survival = answers.survival();
    let at = |t: f64| survival.iter().rev().find(|(edge, _)| *edge <= t).map_or(1.0, |(_, s)| *s);
    let expected = |s: &dyn Fn(f64, f64) -> f64| {
        let mut sum = 0.0;
        let mut before = 0.0;
        for &(edge, _) in &survival {
            // The survival function is constant up to the next edge.
            sum += (edge - before) * (1.0 - (1.0 - s(before, at(before))).powi(FAN_OUT));
            before = edge;
        }
        sum
    };
    let none = expected(&|_, s| s);
    let both = expected(&|_, s| s * s);
    let late = expected(&|t, s| if t < delay { s } else { s * at(t - delay) });
    match none - both {
        gain if gain < WORTH * none => Tail::Unknown,
        gain if none - late >= ENOUGH * gain => Tail::Heavy,
        _ => Tail::Light,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A standard normal number, by Box and Muller.
    fn normal(random: &mut Random) -> f64 {
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.unit()).cos()
    }

    fn judged(sample: impl Fn(&mut Random) -> f64) -> Tail {
        let (mut histogram, mut random) = (Histogram::default(), Random::new(11));
        (0..4_000).for_each(|_| {
            histogram.add(sample(&mut random));
        });
        tail(&histogram, 0.05)
    }

    #[test]
    fn a_lognormal_tail_is_light_and_a_pareto_tail_heavy() {
        assert_eq!(judged(|r| (0.5 * normal(r)).exp()), Tail::Light);
        let pareto = |r: &mut Random| match r.happens(0.02) {
            true => (5.0 * (1.0 - r.unit()).powf(-1.0 / 1.5)).min(500.0),
            false => (0.15 * normal(r)).exp(),
        };
        assert_eq!(judged(pareto), Tail::Heavy);
        assert_eq!(judged(|_| 1.0), Tail::Unknown);
        assert_eq!(tail(&Histogram::default(), 0.05), Tail::Unknown);
    }

    #[test]
    fn fewer_tasks_are_late_where_each_wants_several_tokens() {
        let mut bucket = Bucket::new(0.05);
        assert_eq!(bucket.late_part(), 0.05);
        (0..1_000).for_each(|_| bucket.wanted(2));
        assert!((bucket.late_part() - 0.025).abs() < 1e-6);
        while bucket.take() {}
        assert!((bucket.late_part() - 0.0125).abs() < 1e-6);
    }

    #[test]
    fn a_bucket_pays_a_part_of_all_tasks_and_a_burst() {
        let mut bucket = Bucket::new(0.05);
        let n = (0..10_000).filter(|_| {
            bucket.refill();
            bucket.take()
        });
        assert_eq!(n.count(), 500 + 32 - 1);
        (0..10_000).for_each(|_| bucket.refill());
        assert_eq!((0..100).filter(|_| bucket.take()).count(), 32);
    }
}
