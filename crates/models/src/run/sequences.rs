//! The sequences of a runner: which tokens each has, what they share, and how they are set back.

use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{Choose, Column, Ticket};

use super::pages::Change;
use super::runner::{Device, Runner};
use super::state_copies::StateCopies;
use crate::error::ModelError;

/// What is known of a sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// Tokens whose keys and values are in the cache.
    pub(crate) history: Vec<u32>,
    /// Copies of the recurrent state.
    pub(super) copies: StateCopies,
    /// Position behind the last that was written, though it may have been set back since.
    pub(super) top: usize,
    /// How much each adapter of the model counts.
    pub(super) scales: Vec<f32>,
}

impl Runner {
    /// Sequences that can be held.
    pub fn n_seq(&self) -> usize {
        self.seqs.len()
    }

    /// Whether the model has recurrent state, which cannot be set back by some tokens.
    pub fn has_state(&self) -> bool {
        match &self.device {
            Device::Gpu(g) => g.has_state(),
            Device::Cpu(c) => c.has_state(),
        }
    }

    /// The sequence that runs.
    pub fn selected(&self) -> usize {
        self.at
    }

    /// The tokens of a sequence whose keys and values are in the cache.
    pub fn history_of(&self, seq: usize) -> &[u32] {
        &self.seqs[seq].history
    }

    /// Everything is about this sequence from now on; there are [`Self::n_seq`].
    pub fn select(&mut self, seq: usize) {
        assert!(seq < self.seqs.len(), "sequence {seq} of {}", self.seqs.len());
        self.at = seq;
        match &mut self.device {
            Device::Gpu(g) => g.select(seq as u32),
            Device::Cpu(c) => c.select(seq as u32),
        }
        self.use_scales();
    }

    /// Forgets all tokens of the selected sequence from position `n` on.
    ///
    /// Models with recurrent state, or windows, may pay for it with the next token: see [`Self::settle`].
    pub fn truncate(&mut self, n: usize) {
        let seq = &mut self.seqs[self.at];
        seq.history.truncate(n);
        seq.copies.cut(n);
        if let Device::Gpu(g) = &self.device {
            self.pages.cut(self.at, n.div_ceil(g.config().page as usize));
        }
    }

    /// Makes the first `n` tokens of sequence `from` those of `to`, which forgets its own, and returns how many it could:
    /// their keys and values are not calculated again. On a GPU both have the same pages until one writes there.
    ///
    /// What a sequence with recurrent state began with is lost, and so is what a window has passed; and what other scales of
    /// adapters made is another's: then it is none, and `to` is as it was.
    pub fn share(&mut self, from: usize, to: usize, n: usize) -> usize {
        let n = n.min(self.seqs[from].history.len());
        let can = match &self.device {
            Device::Gpu(g) => !g.has_state() && g.can_go_on(self.seqs[from].top as u32, n as u32),
            Device::Cpu(c) => !c.has_state(),
        };
        if n == 0 || !can || from == to || self.seqs[from].scales != self.seqs[to].scales {
            return 0;
        }
        match &mut self.device {
            Device::Gpu(g) => {
                let changes = self.pages.share(from, to, n.div_ceil(g.config().page as usize));
                apply(g, to, changes);
                if g.has_window() {
                    g.copy_window(from as u32, to as u32);
                }
            }
            Device::Cpu(c) => c.copy_tokens(from as u32, to as u32, n as u32),
        }
        let history = self.seqs[from].history[..n].to_vec();
        let Sequence { top, scales, .. } = self.seqs[from].clone();
        self.seqs[to] = Sequence { history, top, scales, ..Sequence::default() };
        n
    }

    /// How many of the first `n` tokens of the selected sequence need not run again for others to follow: fewer than `n` where
    /// [`Self::settle`] would run some.
    pub(crate) fn reusable(&self, n: usize) -> usize {
        let seq = &self.seqs[self.at];
        let n = n.min(seq.history.len());
        let (has, at) = self.state();
        if n == 0 || ((!has || at == Some(n as u32)) && self.goes_on(n)) {
            return n;
        }
        seq.copies.latest(n).filter(|(_, at)| has && self.goes_on(*at)).map_or(0, |(_, at)| at)
    }

    /// Whether there is recurrent state, and the tokens that it has seen.
    fn state(&self) -> (bool, Option<u32>) {
        match &self.device {
            Device::Gpu(g) => (g.has_state(), g.state_at()),
            Device::Cpu(c) => (c.has_state(), c.state_at()),
        }
    }

    /// Whether the windows of the selected sequence have all that a token at position `n` looks back on.
    fn goes_on(&self, n: usize) -> bool {
        match &self.device {
            Device::Gpu(g) => g.can_go_on(self.seqs[self.at].top as u32, n as u32),
            Device::Cpu(_) => true,
        }
    }

    /// Brings the device to where the history of the selected sequence ends, if tokens cannot just be forgotten; else does
    /// nothing.
    ///
    /// A recurrent state cannot be cut. If it has seen other tokens than those of the history, the latest copy of it that
    /// has not is brought back, and the tokens after that are run again: from the end of the last prompt or from every
    /// 64th token of an answer on, from the start if there is no such copy. In layers with windows older tokens give their
    /// places to newer ones: what is set back by more than a chunk may have to run again. Everything that runs tokens does
    /// this first.
    ///
    /// # Errors
    /// Device errors.
    pub async fn settle(&mut self) -> Result<(), ModelError> {
        let end = self.history().len();
        // The state of a sequence that begins is zeros, whatever there was.
        if end == 0 {
            self.seqs[self.at].top = 0;
            return Ok(());
        }
        let (has, at) = self.state();
        if (!has || at == Some(end as u32)) && self.goes_on(end) {
            return Ok(());
        }
        let from = self.reusable(end);
        let seq = &mut self.seqs[self.at];
        let copy = seq.copies.latest(from).filter(|_| from > 0);
        if from == 0 {
            seq.top = end;
        }
        let tokens = seq.history[from..].to_vec();
        self.own(from, end);
        match &mut self.device {
            Device::Gpu(g) => {
                if let Some((i, at)) = copy {
                    g.bring_back_state(i, at as u32);
                }
                g.prefill(&tokens, from as u32, false).await?;
            }
            Device::Cpu(c) => {
                if let Some((i, at)) = copy {
                    c.bring_back_state(i, at as u32);
                }
                if !tokens.is_empty() {
                    c.eval(&tokens, from as u32, false)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the pages with positions from `from` to before `end` those of the selected sequence alone.
    pub(super) fn own(&mut self, from: usize, end: usize) {
        if let Device::Gpu(g) = &mut self.device {
            let page = g.config().page as usize;
            let end = end.min(g.config().n_ctx as usize);
            apply(g, self.at, self.pages.own(self.at, from / page, end.div_ceil(page)));
        }
    }

    /// Prepares for `n` tokens after the history; returns their position.
    pub(super) async fn ready(&mut self, n: usize) -> Result<u32, ModelError> {
        self.settle().await?;
        let pos = self.history().len();
        self.reach(pos, n);
        Ok(pos as u32)
    }

    /// `n` tokens from position `pos` on are about to be written.
    fn reach(&mut self, pos: usize, n: usize) {
        self.own(pos, pos + n);
        let seq = &mut self.seqs[self.at];
        seq.top = seq.top.max((pos + n).min(self.n_ctx as usize));
    }

    /// These have run after the history.
    pub(super) fn ran(&mut self, tokens: &[u32]) {
        self.seqs[self.at].history.extend_from_slice(tokens);
        self.advanced(self.history().len(), tokens.len());
    }

    /// Notes that the state has seen `pos` tokens, `n` of them at once, and copies it if that is worth while.
    pub(crate) fn advanced(&mut self, pos: usize, n: usize) {
        let has = self.has_state();
        if let Some(i) = self.seqs[self.at].copies.due(pos, n).filter(|_| has) {
            match &mut self.device {
                Device::Gpu(g) => g.keep_state(i),
                Device::Cpu(c) => c.keep_state(i),
            }
        }
    }

    /// Sends `n` tokens from position `pos` on that the device chooses itself.
    pub(super) async fn decode(&mut self, n: u32, pos: usize, choose: Choose) -> Result<Ticket, ModelError> {
        self.reach(pos, n as usize);
        let Device::Gpu(g) = &mut self.device else {
            unreachable!("the device chooses only on a device");
        };
        let ticket = g.decode(n, pos as u32, choose).await?;
        // Copies of a recurrent state are made in the order of what is sent.
        self.advanced(pos + n as usize, 1);
        Ok(ticket)
    }

    /// The tokens of the selected sequence that are certain are the first `n` and these.
    pub(super) fn set_history(&mut self, n: usize, tokens: &[u32]) {
        let history = &mut self.seqs[self.at].history;
        history.truncate(n);
        history.extend_from_slice(tokens);
        // Tokens beyond these are not those that a copy of the state has seen.
        self.truncate(n + tokens.len());
    }

    /// Runs a token of each of several sequences, or more, after what they have: (sequence, token). Returns the logits of
    /// each: `[n, n_vocab]`.
    ///
    /// Together they take little longer than one, except on the processor, where one runs after the other, and for sequences
    /// with other scales of adapters, which run in groups. No sequence is selected afterwards that was not before.
    ///
    /// # Errors
    /// [`ModelError::Token`]; a full context; device errors.
    pub async fn eval_columns(&mut self, columns: &[(usize, u32)]) -> Result<Vec<f32>, ModelError> {
        let selected = self.at;
        let result = match self.alike(columns) {
            groups if groups.len() > 1 => self.eval_groups(columns, groups).await,
            _ => self.eval_each(columns).await,
        };
        self.select(selected);
        result
    }

    /// Runs groups of columns one after the other; the logits are in the order of all columns.
    async fn eval_groups(
        &mut self,
        columns: &[(usize, u32)],
        groups: Vec<Vec<usize>>,
    ) -> Result<Vec<f32>, ModelError> {
        let n_vocab = self.n_vocab() as usize;
        let mut out = vec![0.0; columns.len() * n_vocab];
        for group in groups {
            let part: Vec<(usize, u32)> = group.iter().map(|i| columns[*i]).collect();
            let logits = self.eval_each(&part).await?;
            for (i, row) in group.into_iter().zip(logits.chunks_exact(n_vocab)) {
                out[i * n_vocab..][..n_vocab].copy_from_slice(row);
            }
        }
        Ok(out)
    }

    async fn eval_each(&mut self, columns: &[(usize, u32)]) -> Result<Vec<f32>, ModelError> {
        let tokens: Vec<u32> = columns.iter().map(|c| c.1).collect();
        self.check(&tokens)?;
        let at_once = match &self.device {
            Device::Gpu(g) => g.all_cols() as usize,
            Device::Cpu(_) => 0,
        };
        if at_once == 0 || columns.len() <= 1 {
            let mut out = Vec::new();
            for run in columns.chunk_by(|a, b| a.0 == b.0) {
                self.select(run[0].0);
                let tokens: Vec<u32> = run.iter().map(|c| c.1).collect();
                out.extend(self.eval_all(&tokens, tokens.len()).await?);
            }
            return Ok(out);
        }
        // Recurrent state goes through the columns of a sequence one after the other.
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by_key(|i| columns[*i].0);
        let n_vocab = self.n_vocab() as usize;
        let mut out = vec![0.0; columns.len() * n_vocab];
        for part in order.chunks(at_once) {
            let mut ends: Vec<usize> = self.seqs.iter().map(|s| s.history.len()).collect();
            let mut placed = Vec::new();
            for (seq, token) in part.iter().map(|i| columns[*i]) {
                placed.push(Column { seq: seq as u32, token: Some(token), pos: ends[seq] as u32 });
                ends[seq] += 1;
            }
            // Nothing is touched before it is known that all fit.
            let found = ends.iter().max().map_or(0, |n| *n as u64);
            let limit = u64::from(self.n_ctx());
            if found > limit {
                return Err(RuntimeError::Limit { what: "tokens of the sequence", found, limit }.into());
            }
            for (seq, end) in ends.into_iter().enumerate() {
                let n = end - self.seqs[seq].history.len();
                if n > 0 {
                    self.select(seq);
                    self.ready(n).await?;
                }
            }
            let Device::Gpu(g) = &mut self.device else { unreachable!("several at once run on a device") };
            let logits = g.eval_columns(&placed).await?;
            for (i, row) in part.iter().zip(logits.chunks_exact(n_vocab)) {
                out[i * n_vocab..][..n_vocab].copy_from_slice(row);
            }
            for run in placed.chunk_by(|a, b| a.seq == b.seq) {
                self.select(run[0].seq as usize);
                self.ran(&run.iter().filter_map(|c| c.token).collect::<Vec<_>>());
            }
        }
        Ok(out)
    }
}

fn apply(gpu: &mut chaski_runtime::gpu::GpuModel, seq: usize, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Copy { from, to } => gpu.copy_page(from, to),
            Change::Set { at, page } => gpu.set_pages(seq as u32, at, &[page]),
        }
    }
}
