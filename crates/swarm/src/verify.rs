//! Checks of answers: equal bits or near values, norms near those of the past, and who lies if two answers differ.

use std::collections::{BTreeMap, BTreeSet};

use crate::random::hash_of_bits;
use crate::unit::WorkerId;

/// Greatest normalized mean square error between workers of different classes. Rows in q8 have 2.9e-5; a factor of 1.01
/// has 9.8e-5.
pub(crate) const NMSE: f64 = 5e-5;
/// Weight of a new sample in the history of norms.
const GAIN: f64 = 1.0 / 16.0;
/// Samples before norms are judged.
const LEAST: u32 = 16;
/// Doublings by which a norm may differ from the mean, beside six standard deviations.
const MARGIN: f64 = 3.0;
const DEVIATIONS: f64 = 6.0;

/// An answer, kept to compare another one with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kept {
    /// A hash of its bits: workers of one class compute equal ones.
    Bits(u64),
    /// Its values.
    Values(Vec<f32>),
}

impl Kept {
    /// Keeps an answer: of workers of one class its hash.
    pub(crate) fn of(rows: &[f32], exact: bool) -> Self {
        if exact { Self::Bits(hash_of_bits(rows)) } else { Self::Values(rows.to_vec()) }
    }

    /// True if two answers to the same task agree: equal bits, or a normalized mean square error of at most [`NMSE`].
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bits(a), Self::Bits(b)) => a == b,
            (Self::Values(a), Self::Values(b)) => a.len() == b.len() && nmse(a, b) <= NMSE,
            _ => false,
        }
    }
}

/// Mean square error over the mean square of the greater; 0 if both are zero, infinite if a value is not finite.
pub(crate) fn nmse(a: &[f32], b: &[f32]) -> f64 {
    let (mut error, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (&x, &y) in a.iter().zip(b) {
        let (x, y) = (f64::from(x), f64::from(y));
        error += (x - y) * (x - y);
        of_a += x * x;
        of_b += y * y;
    }
    match error / f64::max(of_a, of_b) {
        _ if error == 0.0 => 0.0,
        ratio if ratio.is_finite() => ratio,
        _ => f64::INFINITY,
    }
}

/// Norms of a unit's answers over those of its inputs, as logarithms.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Norms {
    mean: f64,
    variance: f64,
    n: u32,
}

impl Norms {
    /// True if the norm of an answer is what earlier ones let expect. Answers that are pass into the history.
    pub(crate) fn admits(&mut self, input: &[f32], output: &[f32]) -> bool {
        let (x, y) = (square(input), square(output));
        if x == 0.0 {
            return true;
        }
        // Half of the logarithm of a ratio of squares; a row of zeros is far from everything but others.
        let found = 0.5 * (y / x).max(1e-60).log2();
        let off = found - self.mean;
        if self.n >= LEAST && off.abs() > MARGIN + DEVIATIONS * self.variance.sqrt() {
            return false;
        }
        self.n = self.n.saturating_add(1);
        let gain = GAIN.max(1.0 / f64::from(self.n));
        self.mean += gain * off;
        self.variance += gain * (off * off * (1.0 - gain) - self.variance);
        true
    }
}

/// Sum of squares, in lanes that do not wait for each other.
fn square(values: &[f32]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut lanes = [0.0f64; 8];
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(*v) * f64::from(*v);
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>()
}

/// Disagreements between workers that no third one could decide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disagreements {
    with: BTreeMap<WorkerId, BTreeSet<WorkerId>>,
}

impl Disagreements {
    /// Notes that two workers disagree. Returns the one to blame, if one can be told: honest workers disagree with
    /// liars alone, a liar with everybody, so it is the one with at least two opponents and more than the other.
    pub(crate) fn add(&mut self, a: WorkerId, b: WorkerId) -> Option<WorkerId> {
        self.with.entry(a).or_default().insert(b);
        self.with.entry(b).or_default().insert(a);
        let degree = |w| self.with.get(&w).map_or(0, BTreeSet::len);
        let (more, less) = if degree(a) >= degree(b) { (a, b) } else { (b, a) };
        (degree(more) >= 2 && degree(more) > degree(less)).then_some(more)
    }

    /// Forgets a worker: one that is gone for good.
    pub(crate) fn forget(&mut self, worker: WorkerId) {
        self.with.remove(&worker);
        self.with.values_mut().for_each(|set| {
            set.remove(&worker);
        });
        self.with.retain(|_, set| !set.is_empty());
    }

    /// True if a worker's answers are in doubt.
    pub(crate) fn doubts(&self, worker: WorkerId) -> bool {
        self.with.contains_key(&worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_class_compares_bits_and_others_values() {
        let (a, b) = ([1.0, 2.0, -3.0], [1.0, 2.0, -3.000_001]);
        assert!(!Kept::of(&a, true).agrees(&Kept::of(&b, true)));
        assert!(Kept::of(&a, false).agrees(&Kept::of(&b, false)));
        assert!(!Kept::of(&a, false).agrees(&Kept::of(&[1.01, 2.02, -3.1], false)));
        assert!(!Kept::of(&a, false).agrees(&Kept::of(&[0.0; 3], false)));
        assert!(!Kept::of(&a, false).agrees(&Kept::of(&[f32::NAN; 3], false)));
        assert!(Kept::of(&[0.0; 3], false).agrees(&Kept::of(&[0.0; 3], false)));
    }

    #[test]
    fn one_percent_too_much_is_found_without_bits() {
        let a: Vec<f32> = (1..100).map(|i| (i as f32).sin()).collect();
        let b: Vec<f32> = a.iter().map(|v| v * 1.01).collect();
        assert!(!Kept::of(&a, false).agrees(&Kept::of(&b, false)), "{}", nmse(&a, &b));
    }

    #[test]
    fn zeros_and_a_hundredfold_norm_stand_out() {
        let mut norms = Norms::default();
        let x = [1.0f32, -2.0, 0.5];
        assert!((0..40).all(|i| norms.admits(&x, &[0.3 + 0.01 * (i % 5) as f32, 0.2, -0.1])));
        assert!(!norms.admits(&x, &[0.0; 3]));
        assert!(!norms.admits(&x, &[30.0, 20.0, -10.0]));
        assert!(norms.admits(&x, &[0.6, 0.2, -0.1]));
        assert!(norms.admits(&[0.0; 3], &[0.0; 3]));
    }

    #[test]
    fn a_liar_is_the_one_with_two_opponents() {
        let w = WorkerId;
        let mut found = Disagreements::default();
        assert_eq!(found.add(w(1), w(2)), None);
        assert!(found.doubts(w(1)) && found.doubts(w(2)) && !found.doubts(w(3)));
        assert_eq!(found.add(w(1), w(2)), None);
        assert_eq!(found.add(w(3), w(1)), Some(w(1)));
        found.forget(w(1));
        assert!(!found.doubts(w(2)) && !found.doubts(w(3)));
    }
}
