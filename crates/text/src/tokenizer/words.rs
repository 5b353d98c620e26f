//! Where a text can be cut without changing its tokens, and the tokens of words that came before.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

/// Cuts text in which spaces are `▁` into words, so that no merge reaches across a cut.
///
/// Merging works on a whole line or text, but a merge makes a token, and hardly any token has a `▁` behind another
/// character. Where none does, the text before a `▁` and the text after do not touch each other.
#[derive(Debug, Default)]
pub(super) struct WordBounds {
    /// Characters that stand before a `▁` in some token.
    joins: FxHashSet<char>,
}

impl WordBounds {
    /// For texts that are merged to these `tokens`.
    pub(super) fn new<'t>(tokens: impl Iterator<Item = &'t str>) -> WordBounds {
        let mut joins = FxHashSet::default();
        for token in tokens {
            for (at, _) in token.match_indices('▁') {
                joins.extend(token[..at].chars().next_back().filter(|&before| before != '▁'));
            }
        }
        WordBounds { joins }
    }

    /// The words of `text`; together they are `text`.
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

/// The tokens of the words of one text: most words come again.
#[derive(Default)]
pub(super) struct Seen<'t> {
    /// Word to the place of its tokens in the output.
    places: FxHashMap<&'t str, Range<usize>>,
}

/// Longer words are rare, and not worth the memory.
const MAX_WORD: usize = 32;

impl<'t> Seen<'t> {
    /// Appends the tokens of `word`: those that it had before, or what `encode` appends.
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
        seen.encode("a", &mut out, |_| panic!("it came before"));
        assert_eq!(out, [9, 1, 2, 1, 2]);
    }
}
