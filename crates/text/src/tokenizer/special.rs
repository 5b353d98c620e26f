//! Splits special tokens off a text before the rest is tokenized.

use std::ops::Range;

use super::vocab::Vocab;
use super::{ParseSpecial, TokenKind};

/// White space that a special token may remove.
pub(super) const WHITE: [char; 6] = [' ', '\t', '\n', '\r', '\u{b}', '\u{c}'];

/// A fragment of a text, which is a sequence of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fragment<'t> {
    Text(&'t str),
    Token(u32),
}

/// Finds special tokens in texts.
#[derive(Debug)]
pub(super) struct SpecialTokens {
    /// Tokens that match in any text.
    user_defined: Matcher,
    /// Those, and the tokens that only match when special tokens are parsed.
    all: Matcher,
}

/// Token texts in sorted order, so that those with a common prefix are adjacent.
#[derive(Debug)]
struct Matcher {
    tokens: Vec<Special>,
    /// Number of tokens that begin with a smaller byte, indexed by byte.
    before: Vec<usize>,
}

#[derive(Debug)]
struct Special {
    text: Box<[u8]>,
    id: u32,
    /// True if it matches in data, too.
    is_in_text: bool,
    /// True if it removes the white space after it.
    strips: bool,
}

impl Matcher {
    fn new(mut tokens: Vec<Special>) -> Matcher {
        tokens.retain(|token| !token.text.is_empty());
        tokens.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        let before =
            (0..=256).map(|byte| tokens.partition_point(|t| usize::from(t.text[0]) < byte)).collect();
        Matcher { tokens, before }
    }

    /// Finds every occurrence of a token, including overlapping ones.
    fn find<'m>(&'m self, text: &[u8], mut found: impl FnMut(Range<usize>, &'m Special)) {
        for (start, first) in text.iter().map(|b| usize::from(*b)).enumerate() {
            let mut alike = &self.tokens[self.before[first]..self.before[first + 1]];
            let mut n_byte = 1;
            while let Some(shortest) = alike.first() {
                if shortest.text.len() == n_byte {
                    found(start..start + n_byte, shortest);
                    alike = &alike[1..];
                } else {
                    let Some(next) = text.get(start + n_byte) else { break };
                    let from = alike.partition_point(|t| t.text[n_byte] < *next);
                    let to = alike.partition_point(|t| t.text[n_byte] <= *next);
                    alike = &alike[from..to];
                    n_byte += 1;
                }
            }
        }
    }
}

impl SpecialTokens {
    /// Indexes the special tokens of `vocab`; `strip_right` decides by text which of them remove the white
    /// space after them.
    pub(super) fn new(vocab: &Vocab, strip_right: Option<fn(&str) -> bool>) -> SpecialTokens {
        let special: Vec<(u32, TokenKind)> = (0..vocab.n_text())
            .filter_map(|id| vocab.kind(id).filter(|kind| kind.is_special()).map(|kind| (id, kind)))
            .collect();
        let matcher = |wanted: &dyn Fn(TokenKind) -> bool| {
            let wanted = special.iter().filter(|(_, kind)| wanted(*kind));
            let tokens = wanted.map(|&(id, _)| {
                let text = vocab.text(id).expect("ids below n_text have a text");
                let strips = strip_right.is_some_and(|strips| strips(text));
                let is_in_text = vocab.is_in_text(id);
                Special { text: text.as_bytes().into(), id, is_in_text, strips }
            });
            Matcher::new(tokens.collect())
        };
        SpecialTokens {
            user_defined: matcher(&|kind| kind == TokenKind::UserDefined),
            all: matcher(&|_| true),
        }
    }

    /// True if a special token removes the white space after it.
    pub(super) fn strips(&self) -> bool {
        self.all.tokens.iter().any(|token| token.strips)
    }

    /// Splits `text` at its special tokens.
    ///
    /// Longer tokens are matched first, anywhere in the text; among equal lengths the smaller id; the
    /// occurrences of one token from left to right. No text fragment is empty.
    ///
    /// In `data`, ranges of bytes in order, only user-defined tokens match, without those that mark turns.
    pub(super) fn split<'t>(
        &self,
        text: &'t str,
        parse: ParseSpecial,
        data: &[Range<usize>],
    ) -> Vec<Fragment<'t>> {
        let matcher = match parse {
            ParseSpecial::No => &self.user_defined,
            ParseSpecial::Yes => &self.all,
        };
        let mut found = Vec::new();
        let is_data = |range: &Range<usize>| {
            let next = data.partition_point(|data| data.end <= range.start);
            data.get(next).is_some_and(|data| data.start < range.end)
        };
        matcher.find(text.as_bytes(), |range, token| {
            if token.is_in_text || !is_data(&range) {
                found.push((range, token));
            }
        });
        found.sort_unstable_by_key(|(range, token)| (std::cmp::Reverse(range.len()), token.id, range.start));

        let mut taken: std::collections::BTreeMap<usize, (usize, u32, bool)> = Default::default();
        for (range, &Special { id, strips, .. }) in found {
            let before = taken.range(..range.end).next_back();
            if before.is_none_or(|(_, &(end, ..))| end <= range.start) {
                taken.insert(range.start, (range.end, id, strips));
            }
        }

        let mut fragments = Vec::with_capacity(2 * taken.len() + 1);
        let push_text = |fragments: &mut Vec<Fragment<'t>>, from: usize, to: usize, strips: bool| {
            let mut piece = &text[from..to];
            if strips {
                piece = piece.trim_start_matches(WHITE);
            }
            if !piece.is_empty() {
                fragments.push(Fragment::Text(piece));
            }
        };
        let (mut from, mut strips_next) = (0, false);
        for (start, (end, id, strips)) in taken {
            push_text(&mut fragments, from, start, strips_next);
            fragments.push(Fragment::Token(id));
            (from, strips_next) = (end, strips);
        }
        push_text(&mut fragments, from, text.len(), strips_next);
        fragments
    }
}
