//! Temperature, fixed or dynamic by entropy.

use super::{Candidates, SamplerParams, State};

/// Divides the logits by the temperature.
///
/// With a range, the temperature is `t_min + (t_max - t_min) * (H / ln n)^exponent`, where `H` is the entropy
/// of the `n` candidates and `t_min`, `t_max` are `temp` minus and plus the range. A temperature of 0 keeps
/// only the largest logit, the smallest id in a tie.
pub(super) fn apply(params: &SamplerParams, _: &mut State, candidates: &mut Candidates) {
    if params.dynatemp_range <= 0.0 {
        divide(params.temp, candidates);
    } else if candidates.len() > 1 {
        let least = (params.temp - params.dynatemp_range).max(0.0);
        let most = params.temp + params.dynatemp_range;
        // The order decides which candidate a number draws.
        candidates.sort();
        candidates.softmax();
        let share = candidates.entropy() / (candidates.len() as f64).ln();
        divide(least + (most - least) * (share as f32).powf(params.dynatemp_exponent), candidates);
    }
}

/// Divides the logits by a temperature; at 0 and below, keeps the largest alone.
pub(super) fn divide(temp: f32, candidates: &mut Candidates) {
    let best = candidates.best();
    if temp <= 0.0 {
        candidates.list.clear();
        candidates.list.push(best);
        return;
    }
    // The logits keep their signs, on which penalties depend, unless the largest would become infinite.
    let shift = if (best.logit / temp).is_finite() { 0.0 } else { best.logit };
    for candidate in &mut candidates.list {
        candidate.logit = (candidate.logit - shift) / temp;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logits(temp: f32, dynatemp_range: f32, logits: &[f32]) -> Vec<f32> {
        let params = SamplerParams { temp, dynatemp_range, ..SamplerParams::default() };
        let mut candidates = Candidates::new(logits);
        apply(&params, &mut State::with_history(&[]), &mut candidates);
        candidates.list.iter().map(|candidate| candidate.logit).collect()
    }

    #[test]
    fn differences_are_divided() {
        assert_eq!(logits(0.5, 0.0, &[1.0, 2.0, -1.0]), [2.0, 4.0, -2.0]);
        assert_eq!(logits(1e-30, 0.0, &[1.0, 1e9]), [f32::NEG_INFINITY, 0.0]);
    }

    #[test]
    fn entropy_moves_the_temperature() {
        // All equal: the entropy is ln n, the temperature 1.5.
        assert_eq!(logits(1.0, 0.5, &[0.0, 0.0]), [0.0, 0.0]);
        // p = 1/4, 3/4: entropy 0.5623 of ln 2 = 0.6931, share 0.81128; temperature 0.5 + 0.81128.
        let found = logits(1.0, 0.5, &[0.0, 3f32.ln()]);
        assert!((found[0] - 3f32.ln() / 1.31128).abs() < 1e-4 && found[1] == 0.0, "{found:?}");
    }

    #[test]
    fn zero_keeps_the_first_of_the_largest() {
        let params = SamplerParams { temp: 0.0, ..SamplerParams::default() };
        let mut candidates = Candidates::new(&[1.0, 2.0, 2.0]);
        apply(&params, &mut State::with_history(&[]), &mut candidates);
        assert_eq!(candidates.ids(), [1]);
    }
}
