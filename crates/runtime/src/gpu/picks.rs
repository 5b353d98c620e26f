//! Columns of a step with outputs, and the destinations of these.

use std::ops::Range;

use crate::step::ColumnOutput;

/// Columns of a step with outputs.
pub(super) struct Picks {
    /// Columns with logits: first those that choose under a mask, then others that choose, then those whose logits are
    /// read.
    head: Vec<u32>,
    n_masked: u32,
    n_choice: u32,
    hidden: Vec<u32>,
}

/// Picks of a piece, relative to its first column.
pub(super) struct PiecePicks {
    pub(super) head: Vec<u32>,
    pub(super) n_masked: u32,
    pub(super) n_choice: u32,
    pub(super) hidden: Vec<u32>,
    /// Masks of earlier pieces.
    pub(super) masks_at: u32,
    /// Rows of logits, and hidden states, read from earlier pieces.
    pub(super) logits_at: u32,
    pub(super) hidden_at: u32,
}

impl Picks {
    pub(super) fn of(outputs: &[ColumnOutput]) -> Self {
        let of = |kind| (0u32..).zip(outputs).filter(move |(_, o)| **o == kind).map(|(i, _)| i);
        let mut head: Vec<u32> = of(ColumnOutput::MaskedChoice).collect();
        let n_masked = head.len() as u32;
        head.extend(of(ColumnOutput::Choice));
        let n_choice = head.len() as u32;
        head.extend(of(ColumnOutput::Logits));
        Picks { head, n_masked, n_choice, hidden: of(ColumnOutput::Hidden).collect() }
    }

    fn masked(&self) -> &[u32] {
        &self.head[..self.n_masked as usize]
    }

    fn choices(&self) -> &[u32] {
        &self.head[..self.n_choice as usize]
    }

    /// Those that choose under a mask.
    pub(super) fn n_masked(&self) -> u32 {
        self.n_masked
    }

    /// Those that choose.
    pub(super) fn n_choice(&self) -> u32 {
        self.n_choice
    }

    fn logits(&self) -> &[u32] {
        &self.head[self.n_choice as usize..]
    }

    /// Columns that choose or have logits.
    pub(super) fn n_head(&self) -> u32 {
        self.head.len() as u32
    }

    pub(super) fn n_logits(&self) -> u32 {
        self.n_head() - self.n_choice
    }

    pub(super) fn n_hidden(&self) -> u32 {
        self.hidden.len() as u32
    }

    /// Columns with any output.
    pub(super) fn n(&self) -> u32 {
        self.n_head() + self.n_hidden()
    }

    /// Columns whose logits or hidden states are read.
    pub(super) fn n_read(&self) -> u32 {
        self.n_logits() + self.n_hidden()
    }

    /// Words of the readback: the logits, then the hidden states, with these row strides.
    pub(super) fn words_read(&self, ld_logits: u32, ld_hidden: u32) -> u64 {
        let words = |n: u32, ld: u32| u64::from(n) * u64::from(ld);
        words(self.n_logits(), ld_logits) + words(self.n_hidden(), ld_hidden)
    }

    pub(super) fn within(&self, piece: Range<u32>) -> PiecePicks {
        let part = |all: &[u32]| -> Vec<u32> {
            all.iter().filter(|c| piece.contains(c)).map(|c| c - piece.start).collect()
        };
        let before = |all: &[u32]| all.iter().filter(|c| **c < piece.start).count() as u32;
        let mut head = part(self.choices());
        let n_choice = head.len() as u32;
        head.extend(part(self.logits()));
        PiecePicks {
            head,
            n_masked: part(self.masked()).len() as u32,
            n_choice,
            hidden: part(&self.hidden),
            masks_at: before(self.masked()),
            logits_at: before(self.logits()),
            hidden_at: before(&self.hidden),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_its_part_of_each_output() {
        use ColumnOutput::{Choice, Hidden, Logits, MaskedChoice, Nothing};
        let picks =
            Picks::of(&[Logits, Hidden, Choice, Nothing, Logits, Choice, Hidden, Hidden, MaskedChoice]);
        assert_eq!((picks.choices(), picks.n_head(), picks.n_logits(), picks.n()), (&[8, 2, 5][..], 5, 2, 8));
        assert_eq!(picks.words_read(100, 10), 230);
        let first = picks.within(0..3);
        assert_eq!((first.head, first.n_choice, first.hidden), (vec![2, 0], 1, vec![1]));
        assert_eq!((first.n_masked, first.masks_at), (0, 0));
        let second = picks.within(3..9);
        assert_eq!((second.head, second.n_choice, second.hidden), (vec![5, 2, 1], 2, vec![3, 4]));
        assert_eq!((second.logits_at, second.hidden_at, second.n_masked, second.masks_at), (1, 1, 1, 0));
        assert_eq!(picks.within(9..9).masks_at, 1);
    }
}
