//! Estimates from samples: moving averages of times, and the distribution of answers over their predictions.

/// Part of a new sample in a [`Mean`].
const GAIN: f64 = 1.0 / 8.0;
/// A sample counts as at most this times the mean: one answer of a heavy tail should not steer away from a worker,
/// while a lasting change is followed within a few samples.
const CLIP: f64 = 3.0;
/// Buckets of a [`Histogram`] for each doubling.
const PER_DOUBLING: f64 = 12.0;
/// Doublings below and above a ratio of 1.
const BELOW: f64 = 6.0;
const ABOVE: f64 = 12.0;
const N_BUCKET: usize = ((BELOW + ABOVE) * PER_DOUBLING) as usize;
/// Samples after which all counts are halved, and between judgements of the tail.
const HALF_LIFE: u32 = 512;

/// Exponentially weighted moving average of a positive quantity, with large samples clipped.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Mean {
    value: f64,
    n: u32,
}

impl Mean {
    /// A mean that begins with an assumed value, which the first sample replaces.
    pub(crate) fn assumed(value: f64) -> Self {
        Self { value, n: 0 }
    }

    /// Takes a sample.
    pub(crate) fn add(&mut self, sample: f64) {
        if !sample.is_finite() || sample < 0.0 {
            return;
        }
        self.n = self.n.saturating_add(1);
        // The first samples are averaged evenly.
        let gain = GAIN.max(1.0 / f64::from(self.n));
        let clipped = if self.n > 1 { sample.min(CLIP * self.value.max(1e-7)) } else { sample };
        self.value += gain * (clipped - self.value);
    }

    /// The mean, or the assumed value before the first sample.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    /// Number of samples.
    pub(crate) fn n_sample(&self) -> u32 {
        self.n
    }
}

/// Distribution of positive ratios in logarithmic buckets, of the last some hundred samples.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<f64>,
    sum: f64,
    since_halving: u32,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0.0; N_BUCKET], sum: 0.0, since_halving: 0 }
    }
}

impl Histogram {
    /// Takes a sample, and halves all counts after each 512; then it returns true.
    pub(crate) fn add(&mut self, ratio: f64) -> bool {
        let place = (ratio.max(f64::MIN_POSITIVE).log2() + BELOW) * PER_DOUBLING;
        self.counts[(place.max(0.0) as usize).min(N_BUCKET - 1)] += 1.0;
        self.sum += 1.0;
        self.since_halving += 1;
        let is_due = self.since_halving == HALF_LIFE;
        if is_due {
            self.counts.iter_mut().for_each(|c| *c *= 0.5);
            self.sum *= 0.5;
            self.since_halving = 0;
        }
        is_due
    }

    /// Sum of all counts, after halving.
    pub(crate) fn weight(&self) -> f64 {
        self.sum
    }

    /// The ratio that a part `q` of the samples does not exceed; within 6 %. 1 without samples.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        if self.sum <= 0.0 {
            return 1.0;
        }
        let wanted = q.clamp(0.0, 1.0) * self.sum;
        let mut below = 0.0;
        for (i, &count) in self.counts.iter().enumerate() {
            if below + count >= wanted && count > 0.0 {
                let part = ((wanted - below) / count).clamp(0.0, 1.0);
                return edge(i as f64 + part);
            }
            below += count;
        }
        edge(N_BUCKET as f64)
    }

    /// Points of the survival function: upper edges of the buckets that hold samples, with the part of samples above
    /// each.
    pub(crate) fn survival(&self) -> Vec<(f64, f64)> {
        let mut left = self.sum;
        let mut points = Vec::new();
        for (i, &count) in self.counts.iter().enumerate().filter(|(_, c)| **c > 0.0) {
            left -= count;
            points.push((edge(i as f64 + 1.0), (left / self.sum).max(0.0)));
        }
        points
    }
}

/// The ratio at a place among the buckets.
fn edge(place: f64) -> f64 {
    (place / PER_DOUBLING - BELOW).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_mean_follows_a_lasting_change_and_ignores_one_late_answer() {
        let mut mean = Mean::assumed(9.0);
        (0..20).for_each(|_| mean.add(1.0));
        assert_eq!(mean.value(), 1.0);
        mean.add(500.0);
        assert!(mean.value() < 1.3, "{}", mean.value());
        (0..40).for_each(|_| mean.add(10.0));
        assert!((9.0..=10.0).contains(&mean.value()), "{}", mean.value());
        mean.add(f64::NAN);
        assert!(mean.value().is_finite());
    }

    #[test]
    fn quantiles_of_a_uniform_distribution_are_within_6_percent() {
        let (mut histogram, mut random) = (Histogram::default(), Random::new(4));
        (0..100_000).for_each(|_| {
            histogram.add(random.unit());
        });
        for q in [0.3, 0.5, 0.9, 0.99] {
            let found = histogram.quantile(q);
            assert!((found / q - 1.0).abs() < 0.08, "{q}: {found}");
        }
        assert!(histogram.weight() <= 1024.0);
    }

    #[test]
    fn old_samples_are_forgotten() {
        let mut histogram = Histogram::default();
        (0..5_000).for_each(|_| {
            histogram.add(100.0);
        });
        (0..5_000).for_each(|_| {
            histogram.add(1.0);
        });
        assert!(histogram.quantile(0.99) < 1.1, "{}", histogram.quantile(0.99));
    }

    #[test]
    fn extreme_ratios_stay_in_the_outer_buckets() {
        let mut histogram = Histogram::default();
        [0.0, -1.0, f64::INFINITY, f64::NAN, 1e300].into_iter().for_each(|v| {
            histogram.add(v);
        });
        assert!(histogram.quantile(1.0) <= edge(N_BUCKET as f64));
        assert_eq!(histogram.survival().last().unwrap().1, 0.0);
    }
}
