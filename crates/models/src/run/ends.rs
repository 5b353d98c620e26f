//! Ends of answers that requests choose: a minimum of tokens, tokens that end, and a time limit.

use std::time::Duration;

use chaski_text::Tokenizer;

use crate::error::ModelError;

/// Ends of an answer besides those of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Tokens before which the answer does not end: tokens that end it are not chosen, and stop strings are not looked
    /// for. Where a grammar allows nothing else, it ends all the same.
    pub min_tokens: usize,
    /// Tokens that end the answer like those of the vocabulary. Their text is not part of it.
    pub stop_tokens: Vec<u32>,
    /// Time from the first token after which the answer ends at the next token with a line break.
    pub max_time: Option<Duration>,
}

impl Ends {
    /// Checks that its tokens are in the vocabulary.
    ///
    /// # Errors
    /// [`ModelError::Token`].
    pub(crate) fn check(&self, n_vocab: usize) -> Result<(), ModelError> {
        match self.stop_tokens.iter().copied().find(|t| *t as usize >= n_vocab) {
            Some(token) => Err(ModelError::Token { token, n_vocab: n_vocab as u32 }),
            None => Ok(()),
        }
    }

    /// True if this token ends the answer.
    pub(crate) fn stops_at(&self, token: u32) -> bool {
        self.stop_tokens.contains(&token)
    }
}

/// The state of [`Ends`] in an answer.
pub(crate) struct Ending {
    min_tokens: usize,
    max_time: Option<Duration>,
    /// Tokens that are not chosen before the minimum.
    excluded: Vec<u32>,
    is_due: bool,
}

impl Ending {
    pub(crate) fn new(tokenizer: &Tokenizer, ends: &Ends, ignore_eos: bool) -> Ending {
        let Ends { min_tokens, stop_tokens, max_time } = ends;
        let mut excluded = Vec::new();
        if *min_tokens > 0 {
            excluded.clone_from(stop_tokens);
            // The sampler excludes ignored ones.
            if !ignore_eos {
                excluded.extend(tokenizer.eog_ids());
            }
        }
        Ending { min_tokens: *min_tokens, max_time: *max_time, excluded, is_due: false }
    }

    /// True if an answer of `n` tokens may not end yet.
    pub(crate) fn is_early(&self, n: usize) -> bool {
        n < self.min_tokens
    }

    /// True if the token after `n` has to be chosen under a mask.
    pub(crate) fn masks(&self, n: usize) -> bool {
        self.is_early(n) && !self.excluded.is_empty()
    }

    /// True if the token after `n` is the first that needs no mask.
    pub(crate) fn opens(&self, n: usize) -> bool {
        n > 0 && n == self.min_tokens && !self.excluded.is_empty()
    }

    /// Removes tokens that end from the mask of the token after `n`, unless it has no others.
    pub(crate) fn mask(&self, n: usize, words: &mut [u32]) {
        if !self.masks(n) {
            return;
        }
        let mut removed = Vec::new();
        for &token in &self.excluded {
            let (word, bit) = (token as usize / 32, 1 << (token % 32));
            if words.get(word).is_some_and(|w| w & bit != 0) {
                words[word] &= !bit;
                removed.push((word, bit));
            }
        }
        if words.iter().all(|word| *word == 0) {
            removed.into_iter().for_each(|(word, bit)| words[word] |= bit);
        }
    }

    /// The same for logits.
    pub(crate) fn mask_logits(&self, n: usize, logits: &mut [f32]) {
        if !self.masks(n) {
            return;
        }
        let mut removed = Vec::new();
        for &token in &self.excluded {
            if let Some(logit) = logits.get_mut(token as usize) {
                removed.push((token as usize, std::mem::replace(logit, f32::NEG_INFINITY)));
            }
        }
        if logits.iter().all(|logit| *logit == f32::NEG_INFINITY) {
            // The first of a token that occurs twice has its logit.
            removed.into_iter().rev().for_each(|(token, logit)| logits[token] = logit);
        }
    }

    /// Takes note of text that came this long after the first token.
    pub(crate) fn wrote(&mut self, text: &str, time: Duration) {
        self.is_due |= self.max_time.is_some_and(|most| time > most) && text.contains('\n');
    }

    /// True if the time is over.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(excluded: &[u32]) -> Ending {
        Ending { min_tokens: 2, max_time: None, excluded: excluded.to_vec(), is_due: false }
    }

    #[test]
    fn ends_are_masked_before_the_minimum_unless_nothing_else_is_left() {
        let ending = ending(&[1, 33, 1]);
        let mut words = [0b1011, 0b10];
        ending.mask(1, &mut words);
        assert_eq!(words, [0b1001, 0]);
        let mut words = [0b1011, 0b10];
        ending.mask(2, &mut words);
        assert_eq!(words, [0b1011, 0b10]);
        let mut only = [0b10, 0b10];
        ending.mask(0, &mut only);
        assert_eq!(only, [0b10, 0b10]);

        let none = f32::NEG_INFINITY;
        let mut logits = [0.5, 2.0, none];
        ending.mask_logits(1, &mut logits);
        assert_eq!(logits, [0.5, none, none]);
        let mut only = [none, 2.0, none];
        ending.mask_logits(1, &mut only);
        assert_eq!(only, [none, 2.0, none]);
        let mut late = [0.5, 2.0, none];
        ending.mask_logits(2, &mut late);
        assert_eq!(late, [0.5, 2.0, none]);
    }

    #[test]
    fn masks_are_over_with_the_minimum() {
        let ending = ending(&[1]);
        assert_eq!([0, 1, 2, 3].map(|n| ending.masks(n)), [true, true, false, false]);
        assert_eq!([0, 1, 2, 3].map(|n| ending.opens(n)), [false, false, true, false]);
    }

    #[test]
    fn time_is_over_with_a_line() {
        let mut ending = Ending { max_time: Some(Duration::from_millis(5)), ..ending(&[]) };
        for (text, ms, is_due) in [("a\n", 5, false), ("b", 9, false), ("c\nd", 6, true), ("e", 7, true)] {
            ending.wrote(text, Duration::from_millis(ms));
            assert_eq!(ending.is_due(), is_due, "{text:?}");
        }
    }
}
