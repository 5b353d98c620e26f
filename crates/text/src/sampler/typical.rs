//! Locally typical sampling: a cutoff by distance from the expected surprise.

use super::{Candidate, Candidates, SamplerParams, State};

/// Keeps the tokens whose surprise `-ln p` is nearest to the entropy, until their cumulative probability
/// exceeds `typical_p`.
///
/// # Source
///
/// Meister et al. 2022, "Locally Typical Sampling".
pub(super) fn apply(params: &SamplerParams, _: &mut State, candidates: &mut Candidates) {
    candidates.softmax();
    let entropy = candidates.entropy();
    let distance = |p: f32| (-f64::from(p).ln() - entropy).abs();
    let all = std::mem::take(&mut candidates.list);
    // Sorted as logits are: a second kind of sort would be code that every web page loads.
    let near = |(i, c): (u32, &Candidate)| Candidate { id: i, logit: -distance(c.p) as f32, p: c.p };
    let mut nearest = Candidates::from((0..).zip(&all).map(near).collect::<Vec<_>>());
    nearest.sort();
    *candidates = Candidates::from(nearest.list.iter().map(|c| all[c.id as usize]).collect::<Vec<_>>());
    let mut sum = 0.0;
    let enough = candidates.list.iter().enumerate().position(|(index, candidate)| {
        sum += candidate.p;
        sum > params.typical_p && index + 1 >= params.min_keep
    });
    if let Some(last) = enough {
        candidates.truncate(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surprise_near_the_entropy_stays() {
        let keep = |typical_p| {
            // The entropy is 1.75 bits = 1.213 nats; surprises are 0.693, 1.386, 2.079, 2.079 nats:
            // their distances from it are 0.52, 0.17, 0.87, 0.87.
            let params = SamplerParams { typical_p, ..SamplerParams::default() };
            let mut candidates = Candidates::with_p(&[0.5, 0.25, 0.125, 0.125]);
            apply(&params, &mut State::with_history(&[]), &mut candidates);
            candidates.ids()
        };
        assert_eq!(keep(0.2), [1]);
        assert_eq!(keep(0.5), [1, 0]);
        assert_eq!(keep(0.8), [1, 0, 2]);
    }

    #[test]
    fn excluded_tokens_do_not_spoil_the_entropy() {
        let params = SamplerParams { typical_p: 0.5, ..SamplerParams::default() };
        let mut candidates = Candidates::new(&[f32::NEG_INFINITY, 0.0, 0.0]);
        apply(&params, &mut State::with_history(&[]), &mut candidates);
        assert_eq!(candidates.ids(), [1, 2]);
    }
}
