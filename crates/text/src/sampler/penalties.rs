//! Penalties on recent tokens.

use std::collections::HashMap;

use super::{Candidates, SamplerParams, State};

/// Lowers the logits of the last `penalty_last_n` tokens: `l = l <= 0 ? l * repeat : l / repeat`, then
/// `l -= count * freq + present`.
pub(super) fn apply(params: &SamplerParams, state: &mut State, candidates: &mut Candidates) {
    let n_last = params.penalty_last_n as usize;
    let mut counts: HashMap<u32, u32> = HashMap::new();
    for &id in &state.history[state.history.len().saturating_sub(n_last)..] {
        *counts.entry(id).or_default() += 1;
    }
    if counts.is_empty() {
        return;
    }
    for candidate in &mut candidates.list {
        let Some(&count) = counts.get(&candidate.id) else { continue };
        if candidate.logit <= 0.0 {
            candidate.logit *= params.penalty_repeat;
        } else {
            candidate.logit /= params.penalty_repeat;
        }
        candidate.logit -= count as f32 * params.penalty_freq + params.penalty_present;
    }
    candidates.unsorted();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_fall_by_count_and_presence() {
        let params = SamplerParams {
            penalty_last_n: 4,
            penalty_repeat: 2.0,
            penalty_freq: 0.5,
            penalty_present: 0.25,
            ..SamplerParams::default()
        };
        // Token 3 is outside the window.
        let mut state = State::with_history(&[3, 0, 1, 0, 0]);
        let mut candidates = Candidates::new(&[4.0, -1.0, 3.0, 3.0]);
        apply(&params, &mut state, &mut candidates);
        let logits: Vec<f32> = candidates.list.iter().map(|candidate| candidate.logit).collect();
        assert_eq!(logits, [2.0 - 1.75, -2.0 - 0.75, 3.0, 3.0]);
    }
}
