//! Columns of several sequences, for the cases of operations with state; those of a sequence are consecutive.

use crate::step;

/// Consecutive columns of a sequence.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Sequence.
    pub(crate) seq: u32,
    /// Position of the first column.
    pub(crate) pos: u32,
    /// The first column.
    pub(crate) first: u32,
    /// Number of columns.
    pub(crate) n: u32,
}

/// The columns of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    /// Number of sequences with a state.
    pub(crate) n_seq: u32,
    /// Contiguous runs of different sequences.
    pub(crate) all: Vec<Run>,
}

impl Runs {
    /// Columns of the only sequence.
    pub(crate) fn one(n: u32, pos: u32) -> Runs {
        Runs::of(1, &[(0, pos, n)])
    }

    /// Columns of some of `n_seq` sequences: sequence, first position, columns.
    pub(crate) fn of(n_seq: u32, runs: &[(u32, u32, u32)]) -> Runs {
        let mut first = 0;
        let mut all = Vec::new();
        for (seq, pos, n) in runs.iter().copied() {
            all.push(Run { seq, pos, first, n });
            first += n;
        }
        Runs { n_seq, all }
    }

    /// Number of columns.
    pub(crate) fn n_col(&self) -> u32 {
        self.all.iter().map(|r| r.n).sum()
    }

    /// The step buffer, without page tables.
    pub(crate) fn step(&self) -> Vec<u32> {
        let n_col = self.n_col();
        let mut words = vec![0; step::pages_at(n_col as usize)];
        words[step::N_COL] = n_col;
        for run in &self.all {
            for i in 0..run.n {
                let at = step::HEADER + step::COLUMN * (run.first + i) as usize;
                words[at + step::POSITION] = run.pos + i;
                words[at + step::SEQUENCE] = run.seq;
            }
        }
        words
    }

    /// Name of a case.
    pub(crate) fn label(&self) -> String {
        let runs: Vec<String> =
            self.all.iter().map(|r| format!("{} of {} at {}", r.n, r.seq, r.pos)).collect();
        format!("{} ({} sequences)", runs.join(", "), self.n_seq)
    }
}

/// Batches of several sequences for cases with state. Sequences without columns must keep their state, and the order of
/// sequences is mixed.
pub(crate) fn batches() -> Vec<Runs> {
    vec![
        Runs::of(2, &[(1, 4, 1)]),
        Runs::of(3, &[(2, 0, 1), (0, 7, 1)]),
        Runs::of(4, &[(3, 2, 5), (0, 0, 1), (1, 40, 2)]),
    ]
}
