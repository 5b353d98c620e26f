//! Top-n-sigma: a cutoff by standard deviations of the logits.

use super::{Candidates, SamplerParams, State};

/// Excludes tokens whose logit is more than `top_n_sigma` standard deviations below the largest.
///
/// # Source
///
/// Tang et al. 2024, "Top-nσ: Not All Logits Are You Need".
pub(super) fn apply(params: &SamplerParams, _: &mut State, candidates: &mut Candidates) {
    if candidates.len() < 2 {
        return;
    }
    let finite =
        || candidates.list.iter().map(|candidate| f64::from(candidate.logit)).filter(|l| l.is_finite());
    let n = finite().count() as f64;
    let mean = finite().sum::<f64>() / n;
    let variance = finite().map(|logit| (logit - mean).powi(2)).sum::<f64>() / n;
    let least = f64::from(candidates.best().logit) - f64::from(params.top_n_sigma) * variance.sqrt();
    for candidate in &mut candidates.list {
        if f64::from(candidate.logit) < least {
            candidate.logit = f32::NEG_INFINITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_far_below_the_largest_are_excluded() {
        // Mean 2, standard deviation sqrt(2) of the finite ones: the limit is 4 - 1.414 = 2.586.
        let params = SamplerParams { top_n_sigma: 1.0, ..SamplerParams::default() };
        let mut candidates = Candidates::new(&[0.0, 1.0, 2.0, 3.0, 4.0, f32::NEG_INFINITY]);
        apply(&params, &mut State::with_history(&[]), &mut candidates);
        let kept: Vec<bool> = candidates.list.iter().map(|candidate| candidate.logit.is_finite()).collect();
        assert_eq!(kept, [false, false, false, true, true, false]);
    }
}
