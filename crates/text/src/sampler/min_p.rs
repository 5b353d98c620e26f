//! Min-p: a cutoff relative to the largest probability.

use super::{Candidates, SamplerParams, State};

/// Keeps tokens with `p >= min_p * p_max`, that is `l >= l_max + ln(min_p)`.
pub(super) fn apply(params: &SamplerParams, _: &mut State, candidates: &mut Candidates) {
    let least = candidates.best().logit + params.min_p.min(1.0).ln();
    let n_kept = candidates.list.iter().filter(|candidate| candidate.logit >= least).count();
    if n_kept >= params.min_keep {
        candidates.list.retain(|candidate| candidate.logit >= least);
    } else {
        candidates.keep_top(params.min_keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_the_largest_decides() {
        let keep = |min_p, min_keep| {
            let params = SamplerParams { min_p, min_keep, ..SamplerParams::default() };
            let mut candidates = Candidates::with_p(&[0.1, 0.5, 0.25, 0.15]);
            apply(&params, &mut State::with_history(&[]), &mut candidates);
            candidates.ids()
        };
        assert_eq!(keep(0.45, 0), [1, 2]);
        assert_eq!(keep(0.25, 0), [1, 2, 3]);
        assert_eq!(keep(1.0, 0), [1]);
        assert_eq!(keep(1.0, 3), [1, 2, 3]);
    }
}
