//! Copies of recurrent state: which exist, and when another is due.

use chaski_runtime::STATE_COPIES;

/// Tokens between two copies during an answer.
const EVERY: usize = 64;
/// The copy at the end of a batch, usually a prompt, and the one during an answer.
const PROMPT: usize = 0;
const ANSWER: usize = 1;

/// Number of history tokens that each copy has processed.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateCopies {
    at: [Option<usize>; STATE_COPIES],
}

impl StateCopies {
    /// Drops copies that have processed tokens from position `n`.
    pub(crate) fn cut(&mut self, n: usize) {
        for at in &mut self.at {
            *at = at.filter(|at| *at <= n);
        }
    }

    /// The latest copy within the first `n` tokens: index and tokens.
    pub(crate) fn latest(&self, n: usize) -> Option<(usize, usize)> {
        let all = self.at.iter().enumerate().filter_map(|(i, at)| at.map(|at| (i, at)));
        all.filter(|(_, at)| *at <= n).max_by_key(|(_, at)| *at)
    }

    /// Index of the copy to make after `pos` tokens, the last `n` of them at once.
    pub(crate) fn due(&mut self, pos: usize, n: usize) -> Option<usize> {
        let last = self.latest(usize::MAX).map_or(0, |(_, at)| at);
        let i = match n {
            0 => return None,
            1 if pos < last + EVERY => return None,
            1 => ANSWER,
            _ => PROMPT,
        };
        self.at[i] = Some(pos);
        Some(i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prompt_and_every_64th_token_of_an_answer_are_kept() {
        let mut c = StateCopies::default();
        assert_eq!(c.due(100, 100), Some(PROMPT));
        let made: Vec<usize> = (101..300).filter(|pos| c.due(*pos, 1).is_some()).collect();
        assert_eq!(made, [164, 228, 292]);
        assert_eq!(c.latest(300), Some((ANSWER, 292)));
        // A rewind to before a copy drops it.
        assert_eq!(c.latest(291), Some((PROMPT, 100)));
        c.cut(291);
        assert_eq!(c.latest(300), Some((PROMPT, 100)));
        c.cut(99);
        assert_eq!(c.latest(300), None);
    }
}
