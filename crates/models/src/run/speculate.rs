//! Speculative decoding: drafts of the next tokens, which the model verifies in one step.
//!
//! Every token is sampled from the model's own logits, with the same sampler as without drafts; drafts only determine
//! how many tokens have logits in one step. So the text, even if sampled, is that without drafts.

use crate::exec::MAX_DRAFT;

/// The source of drafts, and their length.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Speculation {
    /// Tokens per draft, at most [`Self::MAX`]. A step of up to eight tokens takes little longer than one of one token
    /// on memory-bound devices. Requests that run at once share these eight: drafts become shorter, and with more than
    /// [`Self::MAX_RUNNING`] requests there are none.
    pub n_max: usize,
    /// Shorter drafts are not verified.
    pub n_min: usize,
    /// With a draft model: a draft ends before a token that this model gives a lower probability, from 0 to 1. Above 0
    /// each of its tokens is read back.
    pub p_min: f32,
    /// Prompt lookup (without a draft model): length of the match that makes the following tokens a draft.
    pub n_match: usize,
}

impl Speculation {
    /// Together with the certain token these form a batch that reads every matrix once.
    pub const MAX: usize = MAX_DRAFT;

    /// The most requests at once that leave room for a draft of a token for each.
    pub const MAX_RUNNING: usize = MAX_DRAFT.div_ceil(2);

    /// Tokens per draft while `n_running` requests run, of `most` for one alone: all rows of a step fit in those of
    /// one.
    pub(crate) fn n_max_beside(most: usize, n_running: usize) -> usize {
        ((most + 1) / n_running.max(1)).saturating_sub(1)
    }
}

impl Default for Speculation {
    fn default() -> Self {
        Speculation { n_max: 4, n_min: 0, p_min: 0.0, n_match: 2 }
    }
}

impl Speculation {
    /// Prompt lookup: the tokens that followed the most recent occurrence of the longest match.
    pub(crate) fn look_up(self, tokens: &[u32], n: usize) -> Vec<u32> {
        look_up(tokens, self.n_match, n)
    }
}

fn look_up(tokens: &[u32], n_match: usize, n: usize) -> Vec<u32> {
    /// Longer matches add little.
    const LONGEST: usize = 8;
    let end = tokens.len();
    for len in (n_match.max(1)..=LONGEST.max(n_match)).rev().filter(|len| *len < end) {
        let last = &tokens[end - len..];
        // The continuation begins before the end.
        if let Some(at) = (0..end - len).rev().find(|at| &tokens[*at..at + len] == last) {
            return tokens[at + len..].iter().take(n).copied().collect();
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::{Speculation, look_up};

    #[test]
    fn what_followed_before_is_a_guess() {
        let tokens = [1, 2, 3, 4, 5, 2, 3];
        assert_eq!(look_up(&tokens, 2, 2), [4, 5]);
        assert_eq!(look_up(&tokens, 2, 9), [4, 5, 2, 3]);
        assert_eq!(look_up(&tokens, 3, 2), [0u32; 0], "only two tokens match");
        // The longest match wins, then the latest.
        assert_eq!(look_up(&[7, 1, 2, 8, 1, 2, 9, 1, 2], 1, 1), [9]);
        assert_eq!(look_up(&[7, 1, 2, 8, 1, 2, 9, 7, 1, 2], 1, 1), [8]);
        // Repetition overlaps itself.
        assert_eq!(look_up(&[5, 5, 5], 2, 4), [5]);
        assert_eq!(look_up(&[5], 1, 4), [0u32; 0]);
        assert_eq!(look_up(&[], 1, 4), [0u32; 0]);
    }

    #[test]
    fn requests_share_the_rows_of_a_step() {
        let found: Vec<usize> = (0..=9).map(|n| Speculation::n_max_beside(7, n)).collect();
        assert_eq!(found, [7, 7, 3, 1, 1, 0, 0, 0, 0, 0]);
        assert!(Speculation::n_max_beside(7, Speculation::MAX_RUNNING) > 0);
        assert_eq!(Speculation::n_max_beside(0, 1), 0, "sequences that cannot be rewound");
    }
}
