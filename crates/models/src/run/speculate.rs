//! Speculative decoding: drafts of the next tokens, which the model verifies in one step.
//!
//! Every token is sampled from the model's own logits, with the same sampler as without drafts; drafts only determine
//! how many tokens have logits in one step. So the text, even if sampled, is that without drafts.

use super::runner::Runner;
use crate::error::ModelError;
use crate::exec::MAX_DRAFT;

/// The source of drafts, and their length.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// Tokens per draft, at most [`Self::MAX`]. A step of up to eight tokens takes little longer than one of one token
    /// on memory-bound devices.
    pub n_max: usize,
    /// Prompt lookup (without a draft model): length of the match that makes the following tokens a draft.
    pub n_match: usize,
}

impl Speculation {
    /// Together with the certain token these form a batch that reads every matrix once.
    pub const MAX: usize = MAX_DRAFT;
}

impl Default for Speculation {
    fn default() -> Self {
        Speculation { n_max: 4, n_match: 2 }
    }
}

impl Speculation {
    /// Prompt lookup: the tokens that followed the most recent occurrence of the longest match.
    pub(crate) fn look_up(self, tokens: &[u32], n: usize) -> Vec<u32> {
        look_up(tokens, self.n_match, n)
    }

    /// Drafts greedily with a smaller model. A draft model whose logits are not finite drafts nothing.
    ///
    /// # Errors
    /// Errors of its device.
    pub(crate) async fn draft(
        self,
        runner: &mut Runner,
        tokens: &[u32],
        n: usize,
    ) -> Result<Vec<u32>, ModelError> {
        let n = n.min((runner.n_ctx() as usize).saturating_sub(tokens.len()));
        if n == 0 {
            return Ok(Vec::new());
        }
        // At least one token runs, for its logits.
        let same = runner.history().iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let same = same.min(tokens.len() - 1);
        runner.truncate(same);
        runner.prefill(&tokens[same..]).await?;
        match runner.greedy(n).await {
            Err(ModelError::Sample(_)) => Ok(Vec::new()),
            drafted => drafted,
        }
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
    use super::look_up;

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
}
