//! Room of a step for outputs that are read back: logits and hidden states share it.

use super::Limits;
use crate::request::Read;

/// Room for outputs, in rows of logits.
#[derive(Copy, Clone, Debug)]
pub(super) struct Room {
    pub(super) n_output: usize,
    /// Hidden states in the room of a row of logits.
    n_hidden: usize,
}

impl Room {
    /// All of a step.
    pub(super) fn of(limits: &Limits) -> Self {
        let n_output = limits.max_output;
        Room { n_output, n_hidden: (limits.max_hidden / n_output.max(1)).max(1) }
    }

    /// Outputs of this kind in the room of a row of logits.
    fn n_each(self, read: Read) -> usize {
        if read == Read::Hidden { self.n_hidden } else { 1 }
    }

    /// Number of rows with this output that fit.
    pub(super) fn n_row(self, read: Read) -> usize {
        self.n_output * self.n_each(read)
    }

    /// Takes room for rows that fit.
    pub(super) fn take(&mut self, read: Read, n_row: usize) {
        self.n_output -= n_row.div_ceil(self.n_each(read).max(1));
    }
}
