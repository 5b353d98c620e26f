//! Adaptive-p: sampling that targets tokens of a given probability.

use super::{Candidates, SamplerParams, State, dist};

/// Exponential moving average of the probabilities of the sampled tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: f32,
    weight: f32,
}

impl Mean {
    /// Starts as if the target had always been sampled.
    pub(super) fn new(params: &SamplerParams) -> Mean {
        let weight = 1.0 / (1.0 - params.adaptive_decay.clamp(0.0, 0.99));
        Mean { sum: params.adaptive_target * weight, weight }
    }
}

/// Distance of a probability from the target beyond which its logit falls steeply.
const WIDTH: f32 = 0.3;
/// Logit of a token exactly at the target.
const PEAK: f32 = 5.0;
/// Steepness of the logit's decline.
const SHARPNESS: f32 = 10.0;

/// Samples with the logits `5 - 10 d^2 / (1 + d)`, where `d = |p - aim| / 0.3`, and updates the mean.
///
/// The aim compensates for the past: `2 target - mean`. Without a target, samples with the logits as they are.
pub(super) fn draw(params: &SamplerParams, state: &mut State, candidates: &mut Candidates) -> usize {
    if params.adaptive_target < 0.0 {
        return dist::choose(state, candidates);
    }
    candidates.softmax();
    let original: Vec<f32> = candidates.list.iter().map(|candidate| candidate.p).collect();
    let aim = (2.0 * params.adaptive_target - state.mean.sum / state.mean.weight).clamp(0.0, 1.0);
    for candidate in &mut candidates.list {
        let is_excluded = candidate.logit == f32::NEG_INFINITY;
        if !is_excluded {
            let distance = (candidate.p - aim).abs() / WIDTH;
            candidate.logit = PEAK - SHARPNESS * distance * distance / (1.0 + distance);
        }
    }
    candidates.unsorted();
    let index = dist::choose(state, candidates);
    let decay = params.adaptive_decay.clamp(0.0, 0.99);
    state.mean.sum = decay * state.mean.sum + original[index];
    state.mean.weight = decay * state.mean.weight + 1.0;
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_near_the_aim_are_preferred_and_the_mean_follows() {
        let params = SamplerParams { adaptive_target: 0.3, adaptive_decay: 0.5, ..SamplerParams::default() };
        let mut state = State::with_history(&[]);
        state.mean = Mean::new(&params);
        assert!((state.mean.sum - 0.6).abs() < 1e-6 && state.mean.weight == 2.0);
        let mut candidates = Candidates::with_p(&[0.7, 0.3]);
        let index = draw(&params, &mut state, &mut candidates);
        // Distances 4/3 and 0: logits 5 - 10 * (16/9) / (7/3) = -2.619 and 5.
        assert!((candidates.list[0].logit + 2.619).abs() < 1e-3);
        assert!((candidates.list[1].logit - 5.0).abs() < 1e-3);
        let drawn = if index == 0 { 0.7 } else { 0.3 };
        assert!((state.mean.sum - (0.3 + drawn)).abs() < 1e-6 && state.mean.weight == 2.0);
    }
}
