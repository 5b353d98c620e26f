//! Positions where a text can be split without changing its tokens, and a cache of the tokens of earlier
//! words.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

/// Splits text in which spaces are `▁` into words, so that no merge crosses a split.
///
/// Merging works on a whole line or text, but a merge produces a token, and hardly any token contains a `▁`
/// after another character. Where none does, the text before a `▁` does not interact with the text after it.
#[derive(Debug, Default)]
pub(super) struct WordBounds {
    /// Characters that precede a `▁` in some token.
    joins: FxHashSet<char>,
}

impl WordBounds {
    /// Creates the splitter for texts that are merged into these `tokens`.
    pub(super) fn new<'t>(tokens: impl Iterator<Item = &'t str>) -> WordBounds {
        let mut joins = FxHashSet::default();
        for token in tokens {
            for (at, _) in token.match_indices('▁') {
                joins.extend(token[..at].chars().next_back().filter(|&before| before != '▁'));
            }
        }
        WordBounds { joins }
    }

    /// The words of `text`; they concatenate to `text`.
    pub(super) fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut from = 0;
        let mut spaces = text.match_indices('▁');
        std::iter::from_fn(move || {
            if from == text.len() {
                return None;
            }
            let start = from;
            for (at, _) in spaces.by_ref() {
                let before = text[start..at].chars().next_back();
                if before.is_some_and(|before| before != '▁' && !self.joins.contains(&before)) {
                    from = at;
                    return Some(&text[start..at]);
                }
            }
            from = text.len();
            Some(&text[start..])
        })
    }
}

/// A cache of the tokens of the words in one text: most words occur repeatedly.
#[derive(Default)]
pub(super) struct Seen<'t> {
    /// Maps a word to the position of its tokens in the output.
    places: FxHashMap<&'t str, Range<usize>>,
}

/// Longer words are rare and not worth the memory.
const MAX_WORD: usize = 32;

impl<'t> Seen<'t> {
    /// Appends the tokens of `word`, from the cache or from `encode`.
    pub(super) fn encode(&mut self, word: &'t str, out: &mut Vec<u32>, encode: impl FnOnce(&mut Vec<u32>)) {
        if let Some(place) = self.places.get(word) {
            out.extend_from_within(place.clone());
            return;
        }
        let start = out.len();
        encode(out);
        if word.len() <= MAX_WORD {
            self.places.insert(word, start..out.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_where_no_token_reaches_across() {
        let bounds = WordBounds::new(["▁a", "▁▁", ">▁<", "b"].into_iter());
        let words = |text: &'static str| bounds.split(text).collect::<Vec<_>>();
        assert_eq!(words("▁a▁▁b>▁c▁d"), ["▁a", "▁▁b>▁c", "▁d"]);
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words("▁▁▁"), ["▁▁▁"]);
    }

    #[test]
    fn words_that_came_before_have_the_same_tokens() {
        let (mut seen, mut out) = (Seen::default(), vec![9]);
        seen.encode("a", &mut out, |out| out.extend([1, 2]));
        seen.encode("a", &mut out, |_| panic!("it is cached"));
        assert_eq!(out, [9, 1, 2, 1, 2]);
    }
}
