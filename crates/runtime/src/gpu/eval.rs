//! Results of columns that the processor reads: logits, and what they are made of.

use super::model::{GpuModel, Want};
use super::ready::Body;
use super::steps::Column;
use crate::error::RuntimeError;

impl GpuModel {
    /// The logits of the last token that ran.
    ///
    /// # Errors
    /// Device errors.
    pub async fn logits(&mut self) -> Result<Vec<f32>, RuntimeError> {
        self.read_logits(1).await
    }

    /// Runs tokens and returns the logits of each: `[n, n_vocab]`, at most [`Self::all_cols`] tokens.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`]; [`RuntimeError::State`]; device errors.
    pub async fn eval_all(&mut self, tokens: &[u32], pos: u32) -> Result<Vec<f32>, RuntimeError> {
        self.check_room(tokens.len(), pos)?;
        let (found, limit) = (tokens.len() as u64, u64::from(self.all_cols));
        if found > limit {
            return Err(RuntimeError::Limit { what: "tokens with logits at once", found, limit });
        }
        let n = tokens.len() as u32;
        if n == 0 {
            return Ok(Vec::new());
        }
        if n == 1 {
            self.run_piece(tokens, pos, Want::Last, n).await?;
            return self.read_logits(1).await;
        }
        let seq = self.seq;
        let column = |(token, pos): (&u32, u32)| Column { seq, token: Some(*token), pos };
        self.run_all(n, tokens.iter().zip(pos..).map(column)).await?;
        self.set_state_at(Some(pos + n));
        self.read_logits(n).await
    }

    /// Runs tokens of several sequences together and returns the logits of each: `[n, n_vocab]`, at most
    /// [`Self::all_cols`] tokens. Those of one sequence come in the order of their positions; where there is recurrent
    /// state, one right after the other.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`]; [`RuntimeError::State`]; device errors.
    pub async fn eval_columns(&mut self, columns: &[Column]) -> Result<Vec<f32>, RuntimeError> {
        let most = |of: fn(&Column) -> u32| columns.iter().map(of).max().map_or(0, |n| u64::from(n) + 1);
        let (n_seq, n_ctx) = (u64::from(self.config.n_seq), u64::from(self.config.n_ctx));
        for (what, found, limit) in [
            ("sequences", most(|c| c.seq), n_seq),
            ("tokens of the sequence", most(|c| c.pos), n_ctx),
            ("tokens with logits at once", columns.len() as u64, self.all_cols.into()),
        ] {
            if found > limit {
                return Err(RuntimeError::Limit { what, found, limit });
            }
        }
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let runs: Vec<&[Column]> = columns.chunk_by(|a, b| a.seq == b.seq).collect();
        if self.has_state() {
            self.check_runs(&runs)?;
        }
        // What fails on the way leaves states that nobody knows.
        runs.iter().for_each(|run| self.state_at[run[0].seq as usize] = None);
        let n = columns.len() as u32;
        self.run_all(n, columns.iter().copied()).await?;
        for run in runs {
            self.state_at[run[0].seq as usize] = run.last().map(|c| c.pos + 1);
        }
        self.read_logits(n).await
    }

    /// Whether the recurrent state of each sequence can go on with its columns, which are together.
    pub(super) fn check_runs(&self, runs: &[&[Column]]) -> Result<(), RuntimeError> {
        for (i, run) in runs.iter().enumerate() {
            let Column { seq, pos, .. } = run[0];
            let at = self.state_at[seq as usize];
            if pos > 0 && at != Some(pos) {
                return Err(RuntimeError::State { found: at, pos });
            }
            let found = 1 + runs[..i].iter().filter(|r| r[0].seq == seq).count() as u64;
            if found > 1 {
                return Err(RuntimeError::Limit { what: "parts of a sequence in a batch", found, limit: 1 });
            }
            for two in run.windows(2) {
                if two[1].pos != two[0].pos + 1 {
                    return Err(RuntimeError::State { found: Some(two[0].pos + 1), pos: two[1].pos });
                }
            }
        }
        Ok(())
    }

    /// Runs `n` columns and makes the logits of all.
    async fn run_all(&mut self, n: u32, columns: impl Iterator<Item = Column>) -> Result<(), RuntimeError> {
        self.write(columns, 0..n);
        let from = self.stream(Body::Many { n_col: n }, n).await?;
        let mut encoder = self.encoder();
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let p = self.ready.prompt_of(n);
            let head = p.head_of(n);
            self.on().record(&mut pass, &p.body[from..], n);
            self.on().record(&mut pass, &head.pick, n);
            self.on().record(&mut pass, &head.head, n);
        }
        self.gpu.submit(Some(encoder));
        Ok(())
    }

    /// Columns that one call of [`Self::eval_hidden`] takes at most.
    pub fn hidden_cols(&self) -> u32 {
        self.hidden_cols
    }

    /// Runs tokens and returns what the logits of each would be made of, the result of the last norm: `[n, n_embd]`, at most
    /// [`Self::hidden_cols`] tokens.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`]; [`RuntimeError::State`]; device errors.
    pub async fn eval_hidden(&mut self, tokens: &[u32], pos: u32) -> Result<Vec<f32>, RuntimeError> {
        self.check_room(tokens.len(), pos)?;
        let (found, limit) = (tokens.len() as u64, u64::from(self.hidden_cols));
        if found > limit {
            return Err(RuntimeError::Limit { what: "tokens with embeddings at once", found, limit });
        }
        let n = tokens.len() as u32;
        if n == 0 {
            return Ok(Vec::new());
        }
        self.run_piece(tokens, pos, Want::Hidden, n).await?;
        let from = self.buffers.acts[self.ready.prompt_of(n).hidden_at].clone();
        self.read_rows(&from, n, self.hidden).await
    }

    async fn read_logits(&mut self, n: u32) -> Result<Vec<f32>, RuntimeError> {
        let from = self.buffers.logits.clone();
        self.read_rows(&from, n, (self.n_vocab, self.ld_logits)).await
    }

    /// The first `n` rows of `width` values, every `ld` values, of a buffer; no more than the logits have room for.
    async fn read_rows(
        &mut self,
        from: &wgpu::Buffer,
        n: u32,
        (width, ld): (u32, u32),
    ) -> Result<Vec<f32>, RuntimeError> {
        let n_byte = u64::from(ld) * 4 * u64::from(n);
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(from, 0, &self.buffers.logits_staging, 0, n_byte);
        let index = self.gpu.submit(Some(encoder));
        self.rows(n, (width, ld), Some(index)).await
    }

    /// The first `n` rows that a submission left where logits are read back.
    pub(super) async fn rows(
        &self,
        n: u32,
        (width, ld): (u32, u32),
        index: Option<wgpu::SubmissionIndex>,
    ) -> Result<Vec<f32>, RuntimeError> {
        let n_byte = u64::from(ld) * 4 * u64::from(n);
        let bytes = self.gpu.read(&self.buffers.logits_staging, n_byte, index).await?;
        let mut out = Vec::with_capacity((n * width) as usize);
        for row in bytes.chunks_exact(ld as usize * 4) {
            out.extend(bytemuck::pod_collect_to_vec::<u8, f32>(&row[..width as usize * 4]));
        }
        Ok(out)
    }
}
