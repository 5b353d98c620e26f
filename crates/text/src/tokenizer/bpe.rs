//! Byte-pair encoding with ranked merges: byte-level (`gpt2`) and on characters (`gemma4`).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::pre::PreTokenizer;
use super::unicode_form::Form;
use super::vocab::Vocab;
use super::words::{Seen, WordBounds};
use super::{TokenizerError, bytes};
use crate::threads::for_each;

/// The merges of a BPE tokenizer.
///
/// Symbols are numbers: a token's id, or a number from the vocabulary's size upwards for texts that only
/// occur in merges.
#[derive(Debug)]
pub(super) struct Merges {
    /// Maps a pair of symbols to its rank and the resulting symbol.
    pairs: FxHashMap<(u32, u32), (u32, u32)>,
    /// Texts that are not tokens.
    extra: FxHashMap<Box<str>, u32>,
}

/// A character that is in no token and no merge; it is never merged.
const UNKNOWN: u32 = u32::MAX;

impl Merges {
    /// Parses lines `left right`, split at the first space after the first byte; the first of several equal
    /// lines counts.
    pub(super) fn new<'m>(
        vocab: &Vocab,
        lines: impl Iterator<Item = &'m str>,
    ) -> Result<Merges, TokenizerError> {
        let lines: Vec<&str> = lines.collect();
        if lines.is_empty() {
            return Err(TokenizerError::Missing { key: "tokenizer.ggml.merges" });
        }
        // Looking up three texts per line is bound by memory latency, which several threads hide.
        let runs: Vec<(usize, &[&str])> =
            lines.chunks(RUN).enumerate().map(|(i, run)| (i * RUN, run)).collect();
        let found = for_each(&runs, |(first, run)| look_up(vocab, *first, run));
        let mut extra = FxHashMap::default();
        let mut symbol = |known: Option<u32>, text: &dyn Fn() -> String| {
            known.unwrap_or_else(|| {
                let next = vocab.n_text() + extra.len() as u32;
                *extra.entry(text().into_boxed_str()).or_insert(next)
            })
        };
        let mut pairs = FxHashMap::with_capacity_and_hasher(lines.len(), FxBuildHasher);
        let mut rank = 0;
        for run in found {
            for Line { left, right, ids } in run? {
                let both = symbol(ids[2], &|| format!("{left}{right}"));
                let pair = (symbol(ids[0], &|| left.to_owned()), symbol(ids[1], &|| right.to_owned()));
                pairs.entry(pair).or_insert((rank, both));
                rank += 1;
            }
        }
        Ok(Merges { pairs, extra })
    }

    fn symbol(&self, vocab: &Vocab, text: &str) -> u32 {
        vocab.id(text).or_else(|| self.extra.get(text).copied()).unwrap_or(UNKNOWN)
    }

    /// Appends the ids of one word: repeatedly merges the pair with the lowest rank, leftmost first.
    ///
    /// `spell` appends the ids for remaining symbols that are not tokens.
    fn encode_word(
        &self,
        vocab: &Vocab,
        word: &str,
        spell: fn(&Vocab, &str, &mut Vec<u32>),
        out: &mut Vec<u32>,
    ) {
        let n_piece = word.chars().count();
        let mut pieces: Vec<Piece> = Vec::with_capacity(n_piece);
        for (index, (start, c)) in word.char_indices().enumerate() {
            let end = start + c.len_utf8();
            let symbol = self.symbol(vocab, &word[start..end]);
            let prev = index.checked_sub(1).unwrap_or(NONE);
            let next = if index + 1 < n_piece { index + 1 } else { NONE };
            pieces.push(Piece { symbol, start, end, prev, next });
        }

        let mut queue = BinaryHeap::new();
        let pair = |pieces: &[Piece], left: usize, right: usize| {
            let symbols = (pieces[left].symbol, pieces[right].symbol);
            let &(rank, merged) = self.pairs.get(&symbols)?;
            Some(Reverse((rank, left, right, symbols, merged)))
        };
        for right in 1..n_piece {
            queue.extend(pair(&pieces, right - 1, right));
        }
        while let Some(Reverse((_, left, right, symbols, merged))) = queue.pop() {
            // A piece that was merged into another is empty; a piece that grew has another symbol.
            let is_stale =
                pieces[left].next != right || (pieces[left].symbol, pieces[right].symbol) != symbols;
            if is_stale || pieces[left].start == pieces[left].end {
                continue;
            }
            let Piece { end, next, .. } = pieces[right];
            pieces[right].start = end;
            pieces[left] = Piece { symbol: merged, end, next, ..pieces[left] };
            if next != NONE {
                pieces[next].prev = left;
                queue.extend(pair(&pieces, left, next));
            }
            let prev = pieces[left].prev;
            if prev != NONE {
                queue.extend(pair(&pieces, prev, left));
            }
        }

        let mut index = 0;
        while let Some(piece) = pieces.get(index) {
            if piece.symbol < vocab.n_text() {
                out.push(piece.symbol);
            } else {
                spell(vocab, &word[piece.start..piece.end], out);
            }
            index = piece.next;
        }
    }
}

/// A line of merges, with the tokens of its left part, of its right part and of the two together.
struct Line<'m> {
    left: &'m str,
    right: &'m str,
    ids: [Option<u32>; 3],
}

/// Number of lines that a thread looks up at a time.
const RUN: usize = 4096;

/// Parses lines, the first of which has index `first`, and looks up their parts.
fn look_up<'m>(vocab: &Vocab, first: usize, lines: &[&'m str]) -> Result<Vec<Line<'m>>, TokenizerError> {
    let (mut joined, mut last) = (String::new(), 0);
    let mut out = Vec::with_capacity(lines.len());
    for (i, line) in lines.iter().enumerate() {
        let first_len = line.chars().next().map_or(0, char::len_utf8);
        let Some(space) = line[first_len..].find(' ') else {
            return Err(TokenizerError::BadMerge { index: first + i, line: (*line).to_owned() });
        };
        let (left, right) = (&line[..first_len + space], &line[first_len + space + 1..]);
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        // Files list merges in the order of their results, which avoids most lookups.
        let near = [last, last + 1].into_iter().find(|id| vocab.text(*id) == Some(&joined));
        let both = near.or_else(|| vocab.id(&joined));
        last = both.unwrap_or(last);
        out.push(Line { left, right, ids: [vocab.id(left), vocab.id(right), both] });
    }
    Ok(out)
}

/// A piece of a word; the pieces form a doubly linked list.
#[derive(Clone, Copy)]
struct Piece {
    symbol: u32,
    /// Offset in bytes.
    start: usize,
    end: usize,
    prev: usize,
    next: usize,
}

/// No neighbour.
const NONE: usize = usize::MAX;

/// Appends a token per byte of the text (here, per character); only invalid vocabularies lack one, which is
/// then skipped.
fn spell_chars(vocab: &Vocab, escaped: &str, out: &mut Vec<u32>) {
    out.extend(escaped.chars().filter_map(|c| vocab.id(c.encode_utf8(&mut [0; 4]))));
}

/// Byte-level BPE: words from a pre-tokenizer, their bytes mapped to characters, then merges.
#[derive(Debug)]
pub(super) struct Bpe {
    pub(super) pre: PreTokenizer,
    /// The form of Unicode that a text is brought into first.
    pub(super) form: Option<Form>,
    pub(super) merges: Merges,
}

impl Bpe {
    /// Appends the ids of `text`.
    pub(super) fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        let text = self.form.map_or(Cow::Borrowed(text), |form| form.of(text));
        let (mut escaped, mut seen) = (String::new(), Seen::default());
        for word in self.pre.split(&text) {
            seen.encode(word, out, |out| {
                bytes::escape(word, &mut escaped);
                match vocab.id(&escaped) {
                    Some(id) if self.pre.ignore_merges() => out.push(id),
                    _ => self.merges.encode_word(vocab, &escaped, spell_chars, out),
                }
            });
        }
    }
}

/// BPE on characters, with `▁` for the space and byte tokens for unknown characters.
#[derive(Debug)]
pub(super) struct Gemma4 {
    merges: Merges,
    bounds: WordBounds,
}

impl Gemma4 {
    pub(super) fn new(vocab: &Vocab, merges: Merges) -> Gemma4 {
        let bounds = WordBounds::new(vocab.texts().chain(merges.extra.keys().map(|text| &**text)));
        Gemma4 { merges, bounds }
    }

    /// Appends the ids of `text`: its words are the runs of newlines and the runs of other characters.
    pub(super) fn encode(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        let escaped = text.replace(' ', "▁");
        let (mut rest, mut seen) = (escaped.as_str(), Seen::default());
        while let Some(first) = rest.chars().next() {
            let is_newline = first == '\n';
            let end = rest.find(|c| (c == '\n') != is_newline).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            match vocab.id(run) {
                Some(id) if is_newline => out.push(id),
                _ => {
                    for word in self.bounds.split(run) {
                        seen.encode(word, out, |out| {
                            self.merges.encode_word(vocab, word, Vocab::push_bytes, out);
                        });
                    }
                }
            }
            rest = after;
        }
    }
}
