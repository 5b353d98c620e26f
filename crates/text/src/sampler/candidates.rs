//! The candidates for the next token, with their logits and probabilities.

use std::cmp::Ordering;

use super::SampleError;

/// A candidate for the next token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The token id.
    pub id: u32,
    /// Logarithm of its probability, up to a constant shared by all candidates.
    pub logit: f32,
    /// Its probability among the candidates, once computed.
    pub p: f32,
}

/// The candidates that samplers work on; never empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    pub(super) list: Vec<Candidate>,
    /// True if the logits are in descending order.
    is_sorted: bool,
}

impl From<Vec<Candidate>> for Candidates {
    fn from(list: Vec<Candidate>) -> Candidates {
        Candidates { list, is_sorted: false }
    }
}

/// Orders by descending logit, then by ascending id.
fn order(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

impl Candidates {
    #[cfg(test)]
    pub(super) fn new(logits: &[f32]) -> Candidates {
        let mut candidates = Candidates::default();
        candidates.fill(logits);
        candidates
    }

    /// Resets to one candidate per logit.
    pub(super) fn fill(&mut self, logits: &[f32]) {
        self.list.clear();
        let all = (0u32..).zip(logits);
        // Adding zero turns negative zero into zero, so that the two compare as equal.
        self.list.extend(all.map(|(id, &logit)| Candidate { id, logit: logit + 0.0, p: 0.0 }));
        self.is_sorted = false;
    }

    /// Rejects logits that cannot be sampled.
    pub(super) fn check(&self) -> Result<(), SampleError> {
        let (mut is_good, mut is_any_left) = (true, false);
        for candidate in &self.list {
            is_good &= candidate.logit < f32::INFINITY; // false for NaN, too
            is_any_left |= candidate.logit > f32::NEG_INFINITY;
        }
        if !is_good {
            let broken = self.list.iter().find(|candidate| !candidate.logit.lt(&f32::INFINITY));
            let &Candidate { id, logit, .. } = broken.expect("the loop above found one");
            return Err(SampleError::NotFinite { id, logit });
        }
        if is_any_left { Ok(()) } else { Err(SampleError::NothingLeft) }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Marks the candidates as unsorted after a change of logits.
    pub(super) fn unsorted(&mut self) {
        self.is_sorted = false;
    }

    pub(super) fn sort(&mut self) {
        if !self.is_sorted {
            self.list.sort_unstable_by(order);
            self.is_sorted = true;
        }
    }

    /// Keeps the `n` candidates (at least one) with the largest logits, sorted.
    pub(super) fn keep_top(&mut self, n: usize) {
        let n = n.max(1);
        if !self.is_sorted && n < self.len() {
            self.list.select_nth_unstable_by(n - 1, order);
        }
        self.list.truncate(n);
        self.sort();
    }

    /// Keeps the first `n` candidates (at least one) in their current order.
    pub(super) fn truncate(&mut self, n: usize) {
        self.list.truncate(n.max(1));
    }

    /// The candidate with the largest logit, the smallest id in a tie.
    pub(super) fn best(&self) -> Candidate {
        if self.is_sorted {
            return self.list[0];
        }
        let mut best = self.list[0];
        for &candidate in &self.list[1..] {
            if candidate.logit > best.logit || (candidate.logit == best.logit && candidate.id < best.id) {
                best = candidate;
            }
        }
        best
    }

    /// Computes the probabilities.
    pub(super) fn softmax(&mut self) {
        let max = self.best().logit;
        let mut sum = 0.0;
        for candidate in &mut self.list {
            candidate.p = (candidate.logit - max).exp();
            sum += f64::from(candidate.p);
        }
        for candidate in &mut self.list {
            candidate.p = (f64::from(candidate.p) / sum) as f32;
        }
    }

    /// Entropy of the probabilities, in nats; requires [`Candidates::softmax`].
    pub(super) fn entropy(&self) -> f64 {
        let terms = self.list.iter().map(|candidate| f64::from(candidate.p));
        -terms.filter(|&p| p > 0.0).map(|p| p * p.ln()).sum::<f64>()
    }

    #[cfg(test)]
    pub(super) fn ids(&self) -> Vec<u32> {
        self.list.iter().map(|candidate| candidate.id).collect()
    }

    /// Candidates with the given probabilities.
    #[cfg(test)]
    pub(super) fn with_p(p: &[f32]) -> Candidates {
        Candidates::new(&p.iter().map(|p| p.ln()).collect::<Vec<_>>())
    }
}
