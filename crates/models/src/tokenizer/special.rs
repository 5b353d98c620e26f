//! Cuts special tokens out of a text before the rest is tokenized.

use aho_corasick::AhoCorasick;

use super::vocab::Vocab;
use super::{ParseSpecial, TokenKind, TokenizerError};

/// A text is a sequence of these.
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
    /// The former, and the ones that only match when special tokens are asked for.
    all: Matcher,
}

#[derive(Debug)]
struct Matcher {
    automaton: AhoCorasick,
    /// Id and whether it swallows white space, by pattern.
    ids: Vec<(u32, bool)>,
}

impl SpecialTokens {
    /// Indexes the special tokens of `vocab`; `strip_right` says by text which ones swallow white space.
    pub(super) fn new(
        vocab: &Vocab,
        strip_right: Option<fn(&str) -> bool>,
    ) -> Result<SpecialTokens, TokenizerError> {
        let special: Vec<(u32, TokenKind)> = (0..vocab.n_text())
            .filter_map(|id| vocab.kind(id).filter(|kind| kind.is_special()).map(|kind| (id, kind)))
            .collect();
        let matcher = |wanted: &dyn Fn(TokenKind) -> bool| {
            let wanted = special.iter().filter(|(_, kind)| wanted(*kind));
            let (ids, texts): (Vec<_>, Vec<_>) = wanted
                .map(|&(id, _)| {
                    let text = vocab.text(id).expect("ids below n_text have a text");
                    ((id, strip_right.is_some_and(|strips| strips(text))), text)
                })
                .unzip();
            let automaton =
                AhoCorasick::new(texts).map_err(|e| TokenizerError::Special { source: Box::new(e) })?;
            Ok(Matcher { automaton, ids })
        };
        Ok(SpecialTokens {
            user_defined: matcher(&|kind| kind == TokenKind::UserDefined)?,
            all: matcher(&|_| true)?,
        })
    }

    /// Cuts `text` at its special tokens.
    ///
    /// Longer tokens are served first, wherever they are; among equal lengths the smaller id; one token takes its
    /// places from left to right. No text fragment is empty.
    pub(super) fn split<'t>(&self, text: &'t str, parse: ParseSpecial) -> Vec<Fragment<'t>> {
        let matcher = match parse {
            ParseSpecial::No => &self.user_defined,
            ParseSpecial::Yes => &self.all,
        };
        let mut found: Vec<_> = if matcher.ids.is_empty() {
            Vec::new()
        } else {
            let places = matcher.automaton.find_overlapping_iter(text);
            places.map(|place| (place.range(), matcher.ids[place.pattern().as_usize()])).collect()
        };
        found.sort_by_key(|(range, (id, _))| (std::cmp::Reverse(range.len()), *id, range.start));

        let mut taken: std::collections::BTreeMap<usize, (usize, u32, bool)> = Default::default();
        for (range, (id, strips)) in found {
            let before = taken.range(..range.end).next_back();
            if before.is_none_or(|(_, &(end, ..))| end <= range.start) {
                taken.insert(range.start, (range.end, id, strips));
            }
        }

        let mut fragments = Vec::with_capacity(2 * taken.len() + 1);
        let push_text = |fragments: &mut Vec<Fragment<'t>>, from: usize, to: usize, strips: bool| {
            let mut piece = &text[from..to];
            if strips {
                piece = piece.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
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
