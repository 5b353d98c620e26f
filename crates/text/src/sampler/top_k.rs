//! Top-k: a cutoff by rank.

use super::{Candidates, SamplerParams, State};

/// Keeps the `top_k` largest logits.
pub(super) fn apply(params: &SamplerParams, _: &mut State, candidates: &mut Candidates) {
    candidates.keep_top(params.top_k.max(0) as usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_logits_stay_and_small_ids_win_ties() {
        let keep = |top_k| {
            let params = SamplerParams { top_k, ..SamplerParams::default() };
            let mut candidates = Candidates::new(&[1.0, 3.0, 2.0, 3.0, 1.0]);
            apply(&params, &mut State::with_history(&[]), &mut candidates);
            candidates.ids()
        };
        assert_eq!(keep(1), [1]);
        assert_eq!(keep(3), [1, 3, 2]);
        assert_eq!(keep(4), [1, 3, 2, 0]);
        assert_eq!(keep(99), [1, 3, 2, 0, 4]);
    }
}
