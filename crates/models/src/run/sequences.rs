//! The sequences of a runner: their tokens, sharing, and rewinding.

use chaski_runtime::STATE_COPIES;
use chaski_schedule::{Change, Want};

use super::pages::Change as PageChange;
use super::runner::Runner;
use super::sequence::Sequence;
use crate::error::ModelError;
use crate::exec::Outputs;

impl Runner {
    /// Number of sequences.
    pub fn n_seq(&self) -> usize {
        self.seqs.len()
    }

    /// True if the model has recurrent state, which cannot be rewound by a few tokens.
    pub fn has_state(&self) -> bool {
        self.device.has_state()
    }

    /// The selected sequence.
    pub fn selected(&self) -> usize {
        self.at
    }

    /// The tokens of a sequence whose keys and values are in the cache.
    pub fn history_of(&self, seq: usize) -> &[u32] {
        &self.seqs[seq].history
    }

    /// Selects a sequence, of [`Self::n_seq`].
    pub fn select(&mut self, seq: usize) {
        assert!(seq < self.seqs.len(), "sequence {seq} of {}", self.seqs.len());
        self.at = seq;
    }

    /// Drops all tokens of the selected sequence from position `n`.
    ///
    /// Models with recurrent state or windows may have to run tokens again later: see [`Self::settle`].
    pub fn truncate(&mut self, n: usize) {
        let seq = &mut self.seqs[self.at];
        seq.history.truncate(n);
        seq.copies.cut(n);
        self.pages.cut(self.at, n.div_ceil(self.page()));
    }

    /// Makes sequence `to` share the first `n` tokens of `from`, dropping its own, and returns how many it could share:
    /// their keys and values are not computed again. They share pages until one writes.
    ///
    /// Only as far as possible: recurrent state at the start of a sequence and tokens that a window has passed are
    /// lost, and sequences with different LoRA scales share nothing, in which case `to` is unchanged.
    pub fn share(&mut self, from: usize, to: usize, n: usize) -> usize {
        let n = n.min(self.seqs[from].history.len());
        let can = !self.has_state() && self.goes_on(from, n);
        if n == 0 || !can || from == to || self.seqs[from].scales != self.seqs[to].scales {
            return 0;
        }
        let changes = self.pages.share(from, to, n.div_ceil(self.page()));
        self.apply(to, changes);
        self.device.copy_window(from, to);
        let history = self.seqs[from].history[..n].to_vec();
        let Sequence { top, scales, .. } = self.seqs[from].clone();
        self.seqs[to] = Sequence { history, top, scales, ..Sequence::default() };
        n
    }

    /// Tokens per page.
    pub(super) fn page(&self) -> usize {
        self.device.limits().page
    }

    /// Number of the first `n` tokens of the selected sequence that need not run again before others can follow: less
    /// than `n` if [`Self::settle`] would run some.
    fn reusable(&self, n: usize) -> usize {
        let seq = &self.seqs[self.at];
        let n = n.min(seq.history.len());
        if n == 0 || self.is_settled(n) {
            return n;
        }
        let latest = seq.copies.latest(n).filter(|(_, at)| self.has_state() && self.goes_on(self.at, *at));
        latest.map_or(0, |(_, at)| at)
    }

    /// True if the device can continue the selected sequence after `n` tokens.
    fn is_settled(&self, n: usize) -> bool {
        let is_there = !self.has_state() || self.device.state_at(self.at) == Some(n as u32);
        is_there && self.goes_on(self.at, n)
    }

    /// True if the windows of a sequence cover what a token at position `n` attends to.
    fn goes_on(&self, seq: usize, n: usize) -> bool {
        self.device.can_go_on(self.seqs[seq].top, n)
    }

    /// Brings the device's state to the end of the selected sequence's history, if a rewind needs more than dropping
    /// tokens.
    ///
    /// Recurrent state cannot be truncated. If it has processed tokens beyond the history, the latest valid copy is
    /// restored and the tokens after it run again: from the end of the last prompt, from every 64th token of an answer,
    /// or from the start if there is no such copy. In layers with windows newer tokens overwrite older ones: a sequence
    /// rewound by more than a chunk may have to run again. Everything that runs tokens does this first.
    ///
    /// # Errors
    /// Device errors.
    pub async fn settle(&mut self) -> Result<(), ModelError> {
        let end = self.history().len();
        // A sequence starts with a zero state.
        if end == 0 {
            self.seqs[self.at].top = 0;
            return Ok(());
        }
        if self.is_settled(end) {
            return Ok(());
        }
        self.drop_sent();
        let from = self.reusable(end);
        let copy = self.seqs[self.at].copies.latest(from).filter(|_| from > 0);
        if from == 0 {
            self.seqs[self.at].top = end;
        }
        let tokens = self.seqs[self.at].history[from..].to_vec();
        self.own(from, end);
        if let Some((i, at)) = copy {
            let (seq, snapshot) = (self.at as u32, self.snapshot(i));
            self.device.change(&Change::Restore { seq, snapshot, n_token: at as u32 });
        }
        let (at, mut out) = ((self.at as u32, from as u32), Outputs::default());
        self.send_chunks(at, &tokens, usize::MAX, |_| Want::Nothing, &mut out).await?;
        self.device.flush().await
    }

    /// Makes the selected sequence the only owner of the pages with positions from `from` to before `end`.
    pub(super) fn own(&mut self, from: usize, end: usize) {
        let page = self.page();
        let end = end.min(self.n_ctx as usize);
        let changes = self.pages.own(self.at, from / page, end.div_ceil(page));
        self.apply(self.at, changes);
    }

    fn apply(&mut self, seq: usize, changes: Vec<PageChange>) {
        for change in changes {
            self.device.change(&match change {
                PageChange::Copy { from, to } => Change::Copy { from, to },
                PageChange::Set { at, page } => {
                    Change::Pages { seq: seq as u32, first: at, pages: vec![page] }
                }
            });
        }
    }

    /// Prepares for `n` tokens after the history; returns their position.
    pub(super) async fn ready(&mut self, n: usize) -> Result<u32, ModelError> {
        self.serves_itself();
        self.settle().await?;
        let pos = self.history().len();
        self.own(pos, pos + n);
        let seq = &mut self.seqs[self.at];
        seq.top = seq.top.max((pos + n).min(self.n_ctx as usize));
        Ok(pos as u32)
    }

    /// Records that these tokens have run after the history.
    pub(super) fn ran(&mut self, tokens: &[u32]) {
        self.seqs[self.at].history.extend_from_slice(tokens);
        self.advanced(self.history().len(), tokens.len());
    }

    /// Records that the device has run `pos` tokens, `n` of them at once, and copies the recurrent state if a copy is
    /// due.
    fn advanced(&mut self, pos: usize, n: usize) {
        let n_snapshot = self.device.limits().n_snapshot.unwrap_or(0);
        // Large windows leave no room for copies of all sequences.
        if !self.has_state() || n_snapshot < STATE_COPIES * (self.at + 1) {
            return;
        }
        if let Some(i) = self.seqs[self.at].copies.due(pos, n) {
            let (seq, snapshot) = (self.at as u32, self.snapshot(i));
            self.device.change(&Change::Keep { seq, snapshot, n_token: pos as u32 });
        }
    }

    /// The snapshot for copy `i` of the selected sequence.
    fn snapshot(&self, i: usize) -> u32 {
        (STATE_COPIES * self.at + i) as u32
    }

    /// Leaves the scheduler mode.
    fn serves_itself(&mut self) {
        if self.is_served {
            self.forget_all();
        }
    }
}
