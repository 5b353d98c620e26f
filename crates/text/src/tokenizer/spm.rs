//! SentencePiece with scores (`tokenizer.ggml.model` = `llama`): Llama 2, Mistral, Phi-3, Gemma 1 to 3.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::vocab::Vocab;
use super::words::{Seen, WordBounds};

/// The merge priority of each token.
#[derive(Debug)]
pub(super) struct Spm {
    scores: Vec<f32>,
    bounds: WordBounds,
    pub(super) add_space_prefix: bool,
}

/// A piece of the text; the pieces form a doubly linked list.
#[derive(Clone, Copy)]
struct Symbol {
    start: usize,
    /// In bytes; 0 once it has been merged into its left neighbour.
    n_byte: usize,
    prev: usize,
    next: usize,
}

/// No neighbour.
const NONE: usize = usize::MAX;

/// A candidate merge of two neighbours.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// Length of the two together when the pair was found; if it has changed, the pair is stale.
    n_byte: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Pair) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Pair) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Pair) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

impl Spm {
    /// `scores` has one entry per token; missing ones count as 0.
    pub(super) fn new(vocab: &Vocab, scores: Vec<f32>, add_space_prefix: bool) -> Spm {
        Spm { scores, bounds: WordBounds::new(vocab.texts()), add_space_prefix }
    }

    /// Appends the ids of `text`; `after_special` is true for the first fragment and after a special token.
    pub(super) fn encode(&self, vocab: &Vocab, text: &str, after_special: bool, out: &mut Vec<u32>) {
        let mut escaped = String::with_capacity(text.len() + 8);
        if self.add_space_prefix && after_special {
            escaped.push('▁');
        }
        for (index, part) in text.split(' ').enumerate() {
            if index > 0 {
                escaped.push('▁');
            }
            escaped.push_str(part);
        }
        let mut seen = Seen::default();
        for word in self.bounds.split(&escaped) {
            seen.encode(word, out, |out| self.encode_word(vocab, word, out));
        }
    }

    /// Appends the ids of one word: repeatedly merges the pair with the best score, leftmost first.
    fn encode_word(&self, vocab: &Vocab, text: &str, out: &mut Vec<u32>) {
        let n_symbol = text.chars().count();
        let mut symbols: Vec<Symbol> = Vec::with_capacity(n_symbol);
        for (index, (start, c)) in text.char_indices().enumerate() {
            let prev = index.checked_sub(1).unwrap_or(NONE);
            let next = if index + 1 < n_symbol { index + 1 } else { NONE };
            symbols.push(Symbol { start, n_byte: c.len_utf8(), prev, next });
        }

        let mut queue = BinaryHeap::new();
        for right in 1..n_symbol {
            queue.extend(self.pair(vocab, text, &symbols, right - 1, right));
        }
        while let Some(pair) = queue.pop() {
            let (left, right) = (symbols[pair.left], symbols[pair.right]);
            if left.n_byte == 0 || right.n_byte == 0 || left.n_byte + right.n_byte != pair.n_byte {
                continue;
            }
            symbols[pair.left].n_byte = pair.n_byte;
            symbols[pair.left].next = right.next;
            symbols[pair.right].n_byte = 0;
            if right.next != NONE {
                symbols[right.next].prev = pair.left;
                queue.extend(self.pair(vocab, text, &symbols, pair.left, right.next));
            }
            if left.prev != NONE {
                queue.extend(self.pair(vocab, text, &symbols, left.prev, pair.left));
            }
        }

        let mut index = 0;
        while let Some(symbol) = symbols.get(index) {
            let piece = &text[symbol.start..symbol.start + symbol.n_byte];
            match vocab.id(piece) {
                Some(id) => out.push(id),
                None => vocab.push_bytes(piece, out),
            }
            index = symbol.next;
        }
    }

    fn pair(&self, vocab: &Vocab, text: &str, symbols: &[Symbol], left: usize, right: usize) -> Option<Pair> {
        let n_byte = symbols[left].n_byte + symbols[right].n_byte;
        let start = symbols[left].start;
        let id = vocab.id(&text[start..start + n_byte])?;
        let score = self.scores.get(id as usize).copied().unwrap_or(0.0);
        Some(Pair { score, left, right, n_byte })
    }
}
