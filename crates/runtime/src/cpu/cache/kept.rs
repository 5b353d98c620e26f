//! The part of a sequence that a step changes, to bring it back.

use super::Sequences;

/// A sequence before a step ([`Sequences::kept`]).
pub(in crate::cpu) struct Kept {
    seq: usize,
    states: Vec<Vec<f32>>,
    state_at: Option<u32>,
    chosen: Option<u32>,
}

impl Sequences {
    /// A copy of what a step changes of a sequence, but for cells of the cache, which the same step writes again.
    pub(in crate::cpu) fn kept(&self, seq: u32) -> Kept {
        let at = seq as usize;
        Kept {
            seq: at,
            states: self.states[at].clone(),
            state_at: self.state_at[at],
            chosen: self.chosen[at],
        }
    }

    /// Brings it back.
    pub(in crate::cpu) fn bring_back(&mut self, kept: Kept) {
        let Kept { seq, states, state_at, chosen } = kept;
        (self.states[seq], self.state_at[seq], self.chosen[seq]) = (states, state_at, chosen);
    }
}
