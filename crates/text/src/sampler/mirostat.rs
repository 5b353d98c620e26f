//! Mirostat: sampling that keeps the surprise of the text at a target.

use super::{Candidates, SamplerParams, State, dist};

/// Number of the most probable tokens that the estimate of version 1 uses.
const N_ESTIMATE: usize = 100;

/// Version 1: estimates the exponent of the decay of the probabilities, truncates at the rank that matches
/// `mu`, samples.
///
/// # Source
///
/// Basu et al. 2020, "Mirostat: A Neural Text Decoding Algorithm that Directly Controls Perplexity", algorithm 1.
pub(super) fn draw_v1(
    params: &SamplerParams,
    state: &mut State,
    candidates: &mut Candidates,
    n_vocab: usize,
) -> usize {
    candidates.sort();
    candidates.softmax();
    let k = rank_limit(candidates, f64::from(state.mu), n_vocab);
    candidates.truncate(k);
    draw(params, state, candidates)
}

fn rank_limit(candidates: &Candidates, mu: f64, n_vocab: usize) -> usize {
    let (mut sum_tb, mut sum_tt) = (0.0, 0.0);
    let pairs = candidates.list.windows(2).take(N_ESTIMATE - 1).take_while(|pair| pair[1].p > 0.0);
    for (index, pair) in pairs.enumerate() {
        let t = ((index + 2) as f64 / (index + 1) as f64).ln();
        let b = (f64::from(pair[0].p) / f64::from(pair[1].p)).ln();
        sum_tb += t * b;
        sum_tt += t * t;
    }
    if sum_tt == 0.0 {
        return 1;
    }
    let exponent = sum_tb / sum_tt;
    let epsilon = exponent - 1.0;
    let k = (epsilon * mu.exp2() / (1.0 - (n_vocab as f64).powf(-epsilon))).powf(1.0 / exponent);
    // Equal probabilities have no exponent: nothing is truncated.
    if k.is_nan() { candidates.len() } else { (k as usize).clamp(1, candidates.len()) }
}

/// Version 2: drops candidates with a surprise above `mu` bits, samples.
///
/// # Source
///
/// Basu et al. 2020, algorithm 2.
pub(super) fn draw_v2(params: &SamplerParams, state: &mut State, candidates: &mut Candidates) -> usize {
    candidates.sort();
    candidates.softmax();
    let n_kept = candidates.list.iter().take_while(|candidate| -candidate.p.log2() <= state.mu).count();
    candidates.truncate(n_kept);
    draw(params, state, candidates)
}

fn draw(params: &SamplerParams, state: &mut State, candidates: &mut Candidates) -> usize {
    let index = dist::choose(state, candidates);
    let surprise = -candidates.list[index].p.log2();
    state.mu -= params.mirostat_eta * (surprise - params.mirostat_tau);
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surprising_tokens_are_dropped_and_mu_follows() {
        let params = SamplerParams { mirostat_tau: 1.0, mirostat_eta: 0.5, ..SamplerParams::default() };
        let mut state = State::with_history(&[]);
        state.mu = 2.0;
        // Surprises 1, 2, 3, 3 bits; the remaining ones renormalised: 2/3 and 1/3.
        let mut candidates = Candidates::with_p(&[0.125, 0.5, 0.25, 0.125]);
        let index = draw_v2(&params, &mut state, &mut candidates);
        assert_eq!(candidates.ids(), [1, 2]);
        let surprise = if index == 0 { 1.5f32.log2() } else { 3f32.log2() };
        assert!((state.mu - (2.0 - 0.5 * (surprise - 1.0))).abs() < 1e-5);
    }

    #[test]
    fn something_is_kept_whatever_mu_is() {
        let params = SamplerParams::default();
        let mut state = State::with_history(&[]);
        state.mu = -5.0;
        let mut candidates = Candidates::with_p(&[0.4, 0.6]);
        assert_eq!(draw_v2(&params, &mut state, &mut candidates), 0);
        assert_eq!(candidates.ids(), [1]);
    }

    #[test]
    fn rank_limit_of_a_power_law_is_the_formula() {
        // p ~ rank^-2: the exponent is 2, epsilon 1, so k = sqrt(2^mu / (1 - 1/n)).
        let n = 1000;
        let p: Vec<f32> = (1..=n).map(|rank| (rank as f32).powi(-2)).collect();
        let mut candidates = Candidates::with_p(&p);
        candidates.sort();
        candidates.softmax();
        assert_eq!(rank_limit(&candidates, 7.0, n), 11); // sqrt(128 / 0.999) = 11.3
        assert_eq!(rank_limit(&Candidates::with_p(&[1.0]), 7.0, n), 1);
        let mut equal = Candidates::with_p(&[0.5, 0.5]);
        equal.softmax();
        assert!((1..=2).contains(&rank_limit(&equal, 7.0, n)));
    }

    #[test]
    fn version_1_draws_from_the_first_ranks() {
        let params = SamplerParams::default();
        let mut state = State::with_history(&[]);
        state.mu = 2.0;
        let p: Vec<f32> = (1..=100).map(|rank| (rank as f32).powi(-2)).collect();
        for _ in 0..100 {
            state.mu = 2.0;
            let mut candidates = Candidates::with_p(&p);
            let index = draw_v1(&params, &mut state, &mut candidates, 100);
            assert!(candidates.list[index].id < 2);
        }
    }
}
