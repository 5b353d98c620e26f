//! Top-p (nucleus): a cutoff by cumulative probability.

use super::{Candidates, SamplerParams, State};

/// Keeps the smallest set of most probable tokens whose cumulative probability reaches `top_p`.
///
/// # Source
///
/// Holtzman et al. 2019, "The Curious Case of Neural Text Degeneration".
pub(super) fn apply(params: &SamplerParams, _: &mut State, candidates: &mut Candidates) {
    candidates.sort();
    candidates.softmax();
    let mut sum = 0.0;
    let enough = candidates.list.iter().enumerate().position(|(index, candidate)| {
        sum += candidate.p;
        sum >= params.top_p && index + 1 >= params.min_keep
    });
    if let Some(last) = enough {
        candidates.truncate(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_list_that_reaches_the_sum_stays() {
        let keep = |top_p, min_keep| {
            let params = SamplerParams { top_p, min_keep, ..SamplerParams::default() };
            let mut candidates = Candidates::with_p(&[0.125, 0.5, 0.25, 0.125]);
            apply(&params, &mut State::with_history(&[]), &mut candidates);
            candidates.ids()
        };
        assert_eq!(keep(0.0, 0), [1]);
        assert_eq!(keep(0.49, 0), [1]);
        assert_eq!(keep(0.51, 0), [1, 2]);
        assert_eq!(keep(0.76, 0), [1, 2, 0]);
        assert_eq!(keep(0.1, 3), [1, 2, 0]);
    }
}
