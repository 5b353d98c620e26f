//! Ways to run tokens of a runner's sequences, each a few lines over steps.

use chaski_runtime::cpu::Watch;
use chaski_schedule::{Input, Row, Step, Want};
use chaski_text::SampleError;

use super::runner::Runner;
use crate::error::ModelError;
use crate::exec::Outputs;

impl Runner {
    /// Runs tokens after the history, in chunks; `want` returns the output of each by index. A chunk has at most
    /// `chunk` tokens, as far as the device supports.
    ///
    /// # Errors
    /// [`ModelError::Token`]; a full context; device errors.
    pub async fn eval(
        &mut self,
        tokens: &[u32],
        chunk: usize,
        want: impl Fn(usize) -> Want,
    ) -> Result<Outputs, ModelError> {
        let mut out = Outputs::default();
        self.send_tokens(tokens, chunk, want, &mut out).await?;
        self.receive_all(&mut out).await?;
        self.ran(tokens);
        Ok(out)
    }

    /// Runs tokens after the history, in chunks; [`Self::logits`] returns the logits of the last.
    ///
    /// # Errors
    /// As [`Self::eval`].
    pub async fn prefill(&mut self, tokens: &[u32]) -> Result<(), ModelError> {
        let want = |i| if i + 1 == tokens.len() { Want::Logits } else { Want::Nothing };
        self.begin_tokens(tokens, want).await
    }

    /// Runs tokens without outputs.
    ///
    /// # Errors
    /// As [`Self::eval`].
    pub async fn feed(&mut self, tokens: &[u32]) -> Result<(), ModelError> {
        self.begin_tokens(tokens, |_| Want::Nothing).await
    }

    /// Submits tokens, which may not have run yet. Outputs are those of the last step.
    async fn begin_tokens(&mut self, tokens: &[u32], want: impl Fn(usize) -> Want) -> Result<(), ModelError> {
        if tokens.is_empty() {
            return Ok(());
        }
        self.send_tokens(tokens, usize::MAX, want, &mut Outputs::default()).await?;
        self.device.flush().await?;
        self.ran(tokens);
        Ok(())
    }

    /// Logits of the last token of [`Self::prefill`]: `[n_vocab]`.
    ///
    /// # Errors
    /// Device errors.
    pub async fn logits(&mut self) -> Result<Vec<f32>, ModelError> {
        let mut out = Outputs::default();
        self.receive_all(&mut out).await?;
        if !out.logits.is_empty() {
            self.logits = out.logits;
        }
        Ok(self.logits.clone())
    }

    /// Runs tokens after the history and returns their final hidden states, after the last norm: `[n, n_embd]`.
    ///
    /// # Errors
    /// As [`Self::eval`].
    pub async fn eval_hidden(&mut self, tokens: &[u32]) -> Result<Vec<f32>, ModelError> {
        let chunk = self.device.max_hidden();
        Ok(self.eval(tokens, chunk, |_| Want::Hidden).await?.hidden)
    }

    /// Runs tokens after the history, `chunk` at a time, and returns all logits: `[n, n_vocab]`.
    ///
    /// # Errors
    /// As [`Self::eval`].
    pub async fn eval_all(&mut self, tokens: &[u32], chunk: usize) -> Result<Vec<f32>, ModelError> {
        let chunk = chunk.min(self.device.max_logits());
        Ok(self.eval(tokens, chunk, |_| Want::Logits).await?.logits)
    }

    /// Runs tokens like [`Self::feed`], and passes the inputs of every product to `watch`; the output matrix processes
    /// all tokens if `all`, else the last one.
    ///
    /// # Errors
    /// [`ModelError::NeedsCpu`] for a model on a GPU; otherwise as [`Self::eval`].
    pub async fn feed_watched(
        &mut self,
        tokens: &[u32],
        all: bool,
        watch: Watch<'_>,
    ) -> Result<(), ModelError> {
        let (seq, pos) = self.begin(tokens).await?;
        let last = tokens.len().saturating_sub(1);
        let want = |i| if all || i == last { Want::Logits } else { Want::Nothing };
        self.device.run_watched(&step_of((seq, pos), tokens, want), watch)?;
        self.ran(tokens);
        Ok(())
    }

    /// Continues greedily after [`Self::prefill`] with `n` tokens; all but the last are then in the cache.
    ///
    /// # Errors
    /// A full context; device errors; logits that are not finite.
    pub async fn greedy(&mut self, n: usize) -> Result<Vec<u32>, ModelError> {
        if n == 0 {
            return Ok(Vec::new());
        }
        let first = largest(&self.logits().await?)?;
        let mut out = Outputs { chosen: vec![first], ..Outputs::default() };
        let before = self.history().len();
        // All but the last of them run.
        self.check_prompt(before, &vec![0; n - 1])?;
        let pos = self.ready(n - 1).await?;
        let mut n_sent = 0;
        while n_sent + 1 < n {
            let left = (n - 1 - n_sent) as u32;
            // The device has chosen all but the first.
            let (input, repeat) = match n_sent {
                0 => (Input::Token(first), 1),
                _ => (Input::Chosen, left.min(self.device.max_repeat())),
            };
            let (seq, pos) = (self.at as u32, pos + n_sent as u32);
            let row = Row { seq, pos, components: None, input, want: Want::Choose };
            let step = Step { rows: vec![row], repeat, n_planned: 1, ..Step::default() };
            self.send(step, &mut out).await?;
            n_sent += repeat as usize;
        }
        self.receive_all(&mut out).await?;
        if out.chosen.iter().any(|t| *t >= self.n_vocab()) {
            return Err(SampleError::NothingLeft.into());
        }
        for token in &out.chosen[..n - 1] {
            self.seqs[self.at].history.push(*token);
        }
        Ok(out.chosen)
    }

    /// Runs tokens of several sequences, one or more each, after their histories: (sequence, token). Returns all
    /// logits: `[n, n_vocab]`.
    ///
    /// A batch takes little longer than a single token.
    ///
    /// # Errors
    /// As [`Self::eval`].
    pub async fn eval_columns(&mut self, columns: &[(usize, u32)]) -> Result<Vec<f32>, ModelError> {
        self.check(&columns.iter().map(|c| c.1).collect::<Vec<_>>())?;
        let n_vocab = self.n_vocab() as usize;
        let mut out = vec![0.0; columns.len() * n_vocab];
        let at_once = self.device.max_logits().min(self.device.limits().max_row);
        let selected = self.at;
        // Recurrent state processes the columns of a sequence in order.
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by_key(|i| columns[*i].0);
        for part in order.chunks(at_once) {
            let placed: Vec<(usize, u32)> = part.iter().map(|i| columns[*i]).collect();
            let made = self.eval_rows(&placed).await;
            self.select(selected);
            for (i, row) in part.iter().zip(made?.chunks_exact(n_vocab)) {
                out[i * n_vocab..][..n_vocab].copy_from_slice(row);
            }
        }
        Ok(out)
    }

    /// Runs columns in one step, grouped by sequence.
    async fn eval_rows(&mut self, columns: &[(usize, u32)]) -> Result<Vec<f32>, ModelError> {
        self.drop_sent();
        let runs: Vec<(usize, Vec<u32>)> = columns
            .chunk_by(|a, b| a.0 == b.0)
            .map(|run| (run[0].0, run.iter().map(|c| c.1).collect()))
            .collect();
        // Nothing changes before all are known to fit.
        for (seq, tokens) in &runs {
            self.check_prompt(self.history_of(*seq).len(), tokens)?;
        }
        let mut rows = Vec::new();
        for (seq, tokens) in &runs {
            self.select(*seq);
            let pos = self.ready(tokens.len()).await?;
            rows.extend(step_of((*seq as u32, pos), tokens, |_| Want::Logits).rows);
        }
        let mut out = Outputs::default();
        let n_planned = rows.len() as u32;
        self.send(Step { rows, repeat: 1, n_planned, ..Step::default() }, &mut out).await?;
        self.receive_all(&mut out).await?;
        for (seq, tokens) in &runs {
            self.select(*seq);
            self.ran(tokens);
        }
        Ok(out.logits)
    }

    /// Checks that these are token ids.
    pub(super) fn check(&self, tokens: &[u32]) -> Result<(), ModelError> {
        match tokens.iter().find(|t| **t >= self.n_vocab()) {
            Some(t) => Err(ModelError::Token { token: *t, n_vocab: self.n_vocab() }),
            None => Ok(()),
        }
    }

    /// Checks that `tokens` fit after `n` others.
    pub(super) fn check_prompt(&self, n: usize, tokens: &[u32]) -> Result<(), ModelError> {
        self.check(tokens)?;
        let (found, limit) = ((n + tokens.len()) as u64, u64::from(self.n_ctx));
        if found > limit {
            return Err(ModelError::Context { found, limit });
        }
        Ok(())
    }

    /// Prepares for tokens after the history: returns their sequence and position.
    async fn begin(&mut self, tokens: &[u32]) -> Result<(u32, u32), ModelError> {
        self.drop_sent();
        self.check_prompt(self.history().len(), tokens)?;
        Ok((self.at as u32, self.ready(tokens.len()).await?))
    }

    /// Submits tokens after the history, which does not include them yet.
    async fn send_tokens(
        &mut self,
        tokens: &[u32],
        chunk: usize,
        want: impl Fn(usize) -> Want,
        out: &mut Outputs,
    ) -> Result<(), ModelError> {
        let at = self.begin(tokens).await?;
        self.send_chunks(at, tokens, chunk, want, out).await
    }

    /// Submits tokens of a sequence from a position.
    pub(super) async fn send_chunks(
        &mut self,
        (seq, pos): (u32, u32),
        tokens: &[u32],
        chunk: usize,
        want: impl Fn(usize) -> Want,
        out: &mut Outputs,
    ) -> Result<(), ModelError> {
        let chunk = chunk.min(self.device.max_columns()).max(1);
        for (i, part) in tokens.chunks(chunk).enumerate() {
            let first = i * chunk;
            let step = step_of((seq, pos + first as u32), part, |at| want(first + at));
            self.send(step, out).await?;
        }
        Ok(())
    }

    /// Submits a step; reads earlier ones if the device requires it.
    async fn send(&mut self, step: Step, out: &mut Outputs) -> Result<(), ModelError> {
        while self.n_sent > 0 && !self.device.takes_step() {
            self.receive(out).await?;
        }
        self.device.submit(&step)?;
        self.n_sent += 1;
        Ok(())
    }

    async fn receive(&mut self, out: &mut Outputs) -> Result<(), ModelError> {
        let read = self.device.read().await?;
        self.n_sent -= 1;
        out.append(read);
        Ok(())
    }

    pub(super) async fn receive_all(&mut self, out: &mut Outputs) -> Result<(), ModelError> {
        while self.n_sent > 0 {
            self.receive(out).await?;
        }
        Ok(())
    }

    /// Drops steps whose outputs nobody requested, and those left over from an error or a dropped future.
    pub(super) fn drop_sent(&mut self) {
        if std::mem::take(&mut self.n_sent) > 0 {
            self.device.drop_steps();
        }
    }
}

/// A step of tokens of one sequence from a position.
fn step_of((seq, pos): (u32, u32), tokens: &[u32], want: impl Fn(usize) -> Want) -> Step {
    let row = |(i, token): (usize, &u32)| Row {
        seq,
        pos: pos + i as u32,
        components: None,
        input: Input::Token(*token),
        want: want(i),
    };
    let rows = tokens.iter().enumerate().map(row).collect();
    Step { rows, repeat: 1, n_planned: tokens.len() as u32, ..Step::default() }
}

/// The first of the largest logits.
fn largest(logits: &[f32]) -> Result<u32, SampleError> {
    let finite = (0u32..).zip(logits).filter(|(_, v)| v.is_finite());
    let best = finite.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
    best.map(|(id, _)| id).ok_or(SampleError::NothingLeft)
}
