//! XTC ("exclude top choices"): randomly drops the most probable tokens.

use super::{Candidates, SamplerParams, State};

/// With probability `xtc_probability`: of the tokens with `p >= xtc_threshold`, drops all but the least probable.
pub(super) fn apply(params: &SamplerParams, state: &mut State, candidates: &mut Candidates) {
    if candidates.len() < 2 {
        return;
    }
    if state.xtc_rng.next_f32() > params.xtc_probability {
        return;
    }
    candidates.sort();
    candidates.softmax();
    let n_top = candidates.list.iter().take_while(|candidate| candidate.p >= params.xtc_threshold).count();
    if n_top > 1 && candidates.len() - (n_top - 1) >= params.min_keep.max(1) {
        candidates.list.drain(..n_top - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_top_choices_but_the_last_are_dropped() {
        let keep = |xtc_probability, xtc_threshold| {
            let params = SamplerParams { xtc_probability, xtc_threshold, ..SamplerParams::default() };
            let mut candidates = Candidates::with_p(&[0.1, 0.5, 0.25, 0.15]);
            apply(&params, &mut State::with_history(&[]), &mut candidates);
            candidates.ids()
        };
        assert_eq!(keep(1.0, 0.2), [2, 3, 0]);
        assert_eq!(keep(1.0, 0.12), [3, 0]);
        assert_eq!(keep(1.0, 0.3), [1, 2, 3, 0]);
    }

    #[test]
    fn it_happens_as_often_as_asked() {
        let params = SamplerParams { xtc_probability: 0.25, xtc_threshold: 0.2, ..SamplerParams::default() };
        let mut state = State::with_history(&[]);
        let dropped = (0..10_000).filter(|_| {
            let mut candidates = Candidates::with_p(&[0.6, 0.4]);
            apply(&params, &mut state, &mut candidates);
            candidates.len() == 1
        });
        let n_dropped = dropped.count();
        assert!((2300..2700).contains(&n_dropped), "{n_dropped}");
    }
}
