//! DRY: a penalty on tokens that would continue a repeated sequence.

use std::collections::{HashMap, HashSet};

use super::{Candidates, SamplerParams, State};
use crate::tokenizer::{AddSpecial, ParseSpecial, RenderSpecial, Tokenizer};

/// Sequence breakers: token sequences that no repetition may span.
#[derive(Clone, Debug, Default)]
pub(super) struct Breakers {
    /// First tokens of breakers, with the tokens that must follow.
    by_head: HashMap<u32, Vec<Vec<u32>>>,
}

/// Breakers are truncated to this length, in bytes.
const MAX_BREAKER: usize = 40;
/// Maximum length of a breaker after its first token, in tokens.
const MAX_TAIL: usize = 20;

impl Breakers {
    /// All tokenizations of `texts`: inside one token, or starting with the end of one.
    pub(super) fn new(texts: &[String], tokenizer: &Tokenizer) -> Breakers {
        let mut breakers = Breakers::default();
        let texts = texts.iter().map(|text| {
            let end = (0..=MAX_BREAKER.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
            &text[..end.unwrap_or(0)]
        });
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        // The tail of a breaker is the same for all tokens with the same ending.
        let mut tails: HashMap<&str, Vec<u32>> = HashMap::new();
        for id in 0..tokenizer.n_vocab() as u32 {
            let word = tokenizer.token_bytes(id, RenderSpecial::Yes);
            for text in &texts {
                if word.windows(text.len()).any(|part| part == text.as_bytes()) {
                    breakers.add(id, Vec::new());
                    continue;
                }
                for cut in (1..text.len()).filter(|&cut| text.is_char_boundary(cut)) {
                    let (begin, rest) = text.split_at(cut);
                    if !word.ends_with(begin.as_bytes()) {
                        continue;
                    }
                    let tail = tails.entry(rest).or_insert_with(|| {
                        tokenizer.encode(rest, AddSpecial::No, ParseSpecial::No).unwrap_or_default()
                    });
                    if !tail.is_empty() {
                        breakers.add(id, tail[..tail.len().min(MAX_TAIL)].to_vec());
                    }
                }
            }
        }
        breakers
    }

    pub(super) fn add(&mut self, head: u32, tail: Vec<u32>) {
        let tails = self.by_head.entry(head).or_default();
        if !tails.contains(&tail) {
            tails.push(tail);
        }
    }

    fn is_single(&self, id: u32) -> bool {
        self.by_head.get(&id).is_some_and(|tails| tails.iter().any(Vec::is_empty))
    }

    /// Number of tokens after the last breaker; `last` begins with the newest token.
    fn n_since(&self, last: &[u32]) -> usize {
        for (index, id) in last.iter().enumerate() {
            let Some(tails) = self.by_head.get(id) else { continue };
            let follows = |tail: &&Vec<u32>| {
                tail.len() <= index && tail.iter().enumerate().all(|(k, id)| last[index - 1 - k] == *id)
            };
            if let Some(longest) = tails.iter().filter(follows).map(Vec::len).max() {
                return index - longest;
            }
        }
        last.len()
    }
}

/// Subtracts `multiplier * base^(m - allowed_length)` from the logit of each token that would continue a
/// repeated sequence of `m` tokens, if `m >= allowed_length`.
pub(super) fn apply(params: &SamplerParams, state: &mut State, candidates: &mut Candidates) {
    let n_last = usize::try_from(params.dry_penalty_last_n).unwrap_or(usize::MAX);
    let last: Vec<u32> = state.history.iter().rev().take(n_last).copied().collect();
    let allowed = params.dry_allowed_length.max(0) as usize;
    let limit = state.breakers.n_since(&last);
    if last.len() <= allowed || limit < allowed {
        return;
    }

    // A repetition of length m at k means that the m newest tokens also occur k tokens back, and that
    // last[k - 1] followed them.
    let mut longest: HashMap<u32, usize> = HashMap::new();
    for (k, &n_equal) in z_function(&last).iter().enumerate().skip(1) {
        let n_equal = n_equal.min(limit);
        if n_equal >= allowed {
            let entry = longest.entry(last[k - 1]).or_default();
            *entry = n_equal.max(*entry);
        }
    }
    let singles: HashSet<u32> = longest.keys().copied().filter(|&id| state.breakers.is_single(id)).collect();

    for candidate in &mut candidates.list {
        if let Some(&n_equal) = longest.get(&candidate.id)
            && !singles.contains(&candidate.id)
        {
            let penalty = params.dry_multiplier * params.dry_base.powf((n_equal - allowed) as f32);
            // A long repetition must not make the logit infinite.
            candidate.logit -= penalty.clamp(-f32::MAX / 2.0, f32::MAX / 2.0);
        }
    }
    candidates.unsorted();
}

/// For each position, the length of the match between the list from there and the list from its start (0 at
/// the start).
fn z_function(list: &[u32]) -> Vec<usize> {
    let mut z = vec![0; list.len()];
    let (mut left, mut right) = (0, 0);
    for k in 1..list.len() {
        if k < right {
            z[k] = z[k - left].min(right - k);
        }
        while k + z[k] < list.len() && list[z[k]] == list[k + z[k]] {
            z[k] += 1;
        }
        if k + z[k] > right {
            (left, right) = (k, k + z[k]);
        }
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    fn penalties(history: &[u32], breakers: &[(u32, &[u32])]) -> Vec<f32> {
        let params = SamplerParams {
            dry_multiplier: 1.0,
            dry_base: 2.0,
            dry_allowed_length: 2,
            dry_penalty_last_n: -1,
            ..SamplerParams::default()
        };
        let mut state = State::with_history(history);
        for (head, tail) in breakers {
            state.breakers.add(*head, tail.to_vec());
        }
        let mut candidates = Candidates::new(&[0.0; 10]);
        apply(&params, &mut state, &mut candidates);
        candidates.list.iter().map(|candidate| -candidate.logit).collect()
    }

    #[test]
    fn the_token_after_a_repeated_sequence_is_penalised() {
        // "1 2 3 4 ... 1 2 3": 4 would repeat a sequence of 3; 2^(3-2).
        let found = penalties(&[1, 2, 3, 4, 9, 1, 2, 3], &[]);
        assert_eq!(found, [0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        // One token is shorter than the allowed length.
        assert_eq!(penalties(&[3, 4, 9, 3], &[]), [0.0; 10]);
        // Two repetitions with different continuations: both are penalised.
        let found = penalties(&[1, 2, 5, 1, 2, 6, 1, 2], &[]);
        assert_eq!((found[5], found[6]), (1.0, 1.0));
    }

    #[test]
    fn breakers_end_sequences() {
        // 2 is a breaker: only "3" counts after it.
        assert_eq!(penalties(&[1, 2, 3, 4, 9, 1, 2, 3], &[(2, &[])]), [0.0; 10]);
        // 1 is a breaker: "2 3" counts.
        assert_eq!(penalties(&[1, 2, 3, 4, 9, 1, 2, 3], &[(1, &[])])[4], 1.0);
        // "1 2" together is a breaker.
        assert_eq!(penalties(&[1, 2, 3, 4, 9, 1, 2, 3], &[(1, &[2])]), [0.0; 10]);
        // A breaker itself is never penalised.
        assert_eq!(penalties(&[1, 2, 3, 4, 9, 1, 2, 3], &[(4, &[])])[4], 0.0);
    }

    #[test]
    fn long_repetitions_stay_finite() {
        let found = penalties(&[7; 1000], &[]);
        assert!(found[7].is_finite() && found[7] > 1e30);
    }

    #[test]
    fn z_function_counts_equal_beginnings() {
        assert_eq!(z_function(&[1, 1, 2, 1, 1, 2, 1]), [0, 1, 0, 4, 1, 0, 1]);
        assert_eq!(z_function(&[]), [0; 0]);
    }
}
