//! Sampling by probability.

use super::{Candidates, State};

/// Samples one candidate; returns its index.
pub(super) fn draw(state: &mut State, candidates: &mut Candidates) -> usize {
    candidates.softmax();
    // A draw takes a number even if there is nothing to choose, so that the n-th token has the n-th.
    let uniform = state.rng.next_f64();
    if candidates.len() == 1 {
        return 0;
    }
    let total: f64 = candidates.list.iter().map(|candidate| f64::from(candidate.p)).sum();
    let wanted = uniform * total;
    let mut sum = 0.0;
    let drawn = candidates.list.iter().position(|candidate| {
        sum += f64::from(candidate.p);
        candidate.p > 0.0 && sum >= wanted
    });
    drawn.unwrap_or_else(|| {
        // The sum can only miss `wanted` by rounding.
        candidates.list.iter().rposition(|candidate| candidate.p > 0.0).unwrap_or(0)
    })
}

/// Samples one candidate as Mirostat and adaptive-p do, which take no number if there is nothing to choose; returns its
/// index.
///
/// # Source
///
/// C++'s `std::discrete_distribution` in libstdc++, with which llama.cpp draws in these two.
pub(super) fn choose(state: &mut State, candidates: &mut Candidates) -> usize {
    if candidates.len() > 1 {
        return draw(state, candidates);
    }
    candidates.softmax();
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_alone_takes_a_number_where_it_is_drawn_and_none_where_it_is_chosen() {
        let next_number = |sample: fn(&mut State, &mut Candidates) -> usize| {
            let mut state = State::with_history(&[]);
            let mut alone = Candidates::with_p(&[0.5]);
            assert_eq!(sample(&mut state, &mut alone), 0);
            assert_eq!(alone.list[0].p, 1.0);
            state.rng.next_f64()
        };
        let mut rng = State::with_history(&[]).rng;
        let (first, second) = (rng.next_f64(), rng.next_f64());
        assert_eq!((next_number(choose), next_number(draw)), (first, second));
    }

    #[test]
    fn frequencies_are_the_probabilities() {
        let p = [0.5, 0.0, 0.3, 0.2];
        let mut state = State::with_history(&[]);
        let mut counts = [0u32; 4];
        const N: u32 = 40_000;
        for _ in 0..N {
            let mut candidates = Candidates::with_p(&p);
            let index = draw(&mut state, &mut candidates);
            counts[candidates.list[index].id as usize] += 1;
        }
        assert_eq!(counts[1], 0);
        for (count, p) in counts.iter().zip(p) {
            // Five standard deviations of a binomial count.
            let expected = f64::from(N) * f64::from(p);
            let deviation = (f64::from(N) * f64::from(p) * (1.0 - f64::from(p))).sqrt();
            assert!((f64::from(*count) - expected).abs() <= 5.0 * deviation, "{counts:?}");
        }
    }
}
