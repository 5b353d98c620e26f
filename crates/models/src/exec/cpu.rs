//! A model on the CPU as an executor.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chaski_runtime::cpu::{CpuModel, Watch};
use chaski_runtime::gpu::Memory;
use chaski_runtime::{Column, ColumnOutput, Experts, RowInput};
use chaski_schedule::{Change, Limits, Step};
use chaski_text::Sampler;
use web_time::Instant;

use super::MAX_DRAFT;
use super::config::in_cpu_memory;
use super::executor::{Outputs, Start};
use super::gpu::column;
use crate::error::ModelError;

/// Maximum number of rows per step of several requests, so that no step takes long.
const MAX_ROW: usize = 64;
/// Columns per run if the CPU has a single thread, which a page shares: about this long each.
const PIECE: (usize, usize) = (4, 64);
const PIECE_TIME: Duration = Duration::from_millis(60);

/// A step in flight.
enum Work {
    /// With the masks of its rows. It stays until it has run, so that a dropped future loses nothing.
    Submitted(Arc<Step>, Arc<[u32]>),
    Done(Outputs),
}

/// A model on the CPU, and the requests in its slots. Sampling is greedy, or the caller samples from logits.
pub(crate) struct CpuExecutor {
    model: CpuModel,
    /// LoRA scales of each slot.
    loras: Vec<Vec<f32>>,
    steps: VecDeque<Work>,
    /// Columns of the next piece, if pieces are bounded.
    piece: usize,
    /// Behind a lock that is never taken, so that the executor can be shared.
    experts: Option<Mutex<Box<dyn Experts>>>,
}

impl CpuExecutor {
    pub(super) fn new(model: CpuModel, lora: Vec<f32>) -> Self {
        let n_seq = model.config().n_seq as usize;
        let (loras, steps) = (vec![lora; n_seq], VecDeque::new());
        CpuExecutor { model, loras, steps, piece: PIECE.0, experts: None }
    }

    pub(super) fn set_experts(&mut self, experts: Option<Box<dyn Experts>>) {
        self.experts = experts.map(Mutex::new);
    }

    pub(super) fn take_experts(&mut self) -> Option<Box<dyn Experts>> {
        self.experts.take().map(|experts| experts.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn limits(&self) -> Limits {
        let c = self.model.config();
        let n_snapshot = self.model.n_snapshot() as usize;
        let whole = self.model.is_encoder();
        // A text of an encoder may fill the context.
        let max_row = if whole { MAX_ROW.max(c.n_ctx as usize) } else { MAX_ROW };
        Limits {
            n_seq: c.n_seq as usize,
            n_ctx: c.n_ctx as usize,
            page: c.page as usize,
            n_page: c.n_page() as usize,
            max_row,
            max_want: max_row,
            max_output: max_row,
            max_hidden: max_row,
            whole,
            n_device: 1,
            max_ahead: 0,
            max_waiting: usize::MAX,
            n_snapshot: (n_snapshot > 0).then_some(n_snapshot),
            max_draft: if self.model.has_state() { 0 } else { MAX_DRAFT },
        }
    }

    pub(super) fn n_thread(&self, n_col: usize) -> usize {
        self.model.n_thread(n_col)
    }

    pub(super) fn row_input(&self) -> RowInput {
        self.model.row_input()
    }

    pub(super) fn rows(&self, _is_alone: bool) -> usize {
        MAX_ROW
    }

    pub(super) fn max_columns(&self) -> usize {
        usize::MAX
    }

    pub(super) fn max_logits(&self) -> usize {
        usize::MAX
    }

    pub(super) fn max_hidden(&self) -> usize {
        usize::MAX
    }

    pub(super) fn max_repeat(&self) -> u32 {
        u32::MAX
    }

    pub(super) fn takes_step(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn max_under_way(&self) -> usize {
        1
    }

    pub(super) fn can_choose(&self, _: &Sampler) -> Result<(), &'static str> {
        Err("the model runs on it")
    }

    #[allow(clippy::unnecessary_wraps, reason = "it fails on a GPU")]
    pub(super) fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        self.loras[start.seq as usize] = start.lora.to_vec();
        Ok(())
    }

    pub(super) fn change(&mut self, change: &Change) {
        match change {
            Change::Start { .. } => unreachable!("a start comes with its sampler"),
            Change::Pages { seq, first, pages } => self.model.set_pages(*seq, *first, pages),
            Change::Copy { from, to } => self.model.copy_page(*from, *to),
            Change::Keep { seq, snapshot, .. } => self.model.keep_snapshot(*seq, *snapshot),
            Change::Restore { seq, snapshot, n_token } => {
                self.model.restore_snapshot(*seq, *snapshot, *n_token);
            }
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "it fails on a GPU")]
    pub(super) fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        self.take_scales(step);
        self.steps.push_back(Work::Submitted(Arc::new(step.clone()), Arc::default()));
        Ok(())
    }

    #[allow(clippy::unnecessary_wraps, reason = "it fails on a GPU")]
    pub(super) fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError> {
        match self.steps.back_mut() {
            Some(Work::Submitted(_, to)) => *to = masks.into(),
            _ => unreachable!("masks follow their step"),
        }
        Ok(())
    }

    pub(super) async fn flush(&mut self) -> Result<(), ModelError> {
        for i in 0..self.steps.len() {
            self.finish(i).await?;
        }
        Ok(())
    }

    /// Number of unread steps.
    pub(super) fn n_step(&self) -> usize {
        self.steps.len()
    }

    pub(super) async fn read(&mut self) -> Result<Outputs, ModelError> {
        self.finish(0).await?;
        match self.steps.pop_front() {
            Some(Work::Done(outputs)) => Ok(outputs),
            _ => unreachable!("the step has run"),
        }
    }

    /// Runs a step that has not run.
    async fn finish(&mut self, i: usize) -> Result<(), ModelError> {
        if let Work::Submitted(step, masks) = &self.steps[i] {
            let (step, masks) = (step.clone(), masks.clone());
            self.steps[i] = Work::Done(self.run(&step, &masks).await?);
        }
        Ok(())
    }

    /// Sets the LoRA scales of the sequences of a step.
    fn take_scales(&mut self, step: &Step) {
        for run in step.rows.chunk_by(|a, b| a.seq == b.seq) {
            self.model.set_lora_scales(run[0].seq, &self.loras[run[0].seq as usize]);
        }
    }

    /// Runs a step, in a browser with pauses for other tasks.
    async fn run(&mut self, step: &Step, mut masks: &[u32]) -> Result<Outputs, ModelError> {
        self.model.set_rows(&step.embeddings)?;
        let (columns, outputs): (Vec<Column>, Vec<ColumnOutput>) = step.rows.iter().map(column).unzip();
        let is_whole = cfg!(not(target_arch = "wasm32")) || step.repeat > 1 || self.model.is_encoder();
        let n_masked = |outputs: &[ColumnOutput]| {
            outputs.iter().filter(|output| **output == ColumnOutput::MaskedChoice).count()
        };
        let n_word = masks.len() / n_masked(&outputs).max(1);
        let (mut out, mut at) = (Outputs::default(), 0);
        while at < columns.len() {
            breathe().await;
            let end = if is_whole { columns.len() } else { columns.len().min(at + self.piece) };
            let (own, rest) = masks.split_at(n_masked(&outputs[at..end]) * n_word);
            self.model.set_masks(own);
            masks = rest;
            let start = Instant::now();
            let (columns, outputs) = (&columns[at..end], &outputs[at..end]);
            let made = match self.experts.as_mut().map(Mutex::get_mut) {
                None => self.model.run_step(columns, outputs, step.repeat)?,
                Some(experts) => {
                    let experts = experts.unwrap_or_else(PoisonError::into_inner).as_mut();
                    self.model.run_step_away(columns, outputs, step.repeat, experts).await?
                }
            };
            out.append(Outputs { chosen: made.chosen, logits: made.logits, hidden: made.hidden });
            self.piece = match start.elapsed() {
                long if long > PIECE_TIME => self.piece / 2,
                short if short < PIECE_TIME / 3 => self.piece * 2,
                _ => self.piece,
            }
            .clamp(PIECE.0, PIECE.1);
            at = end;
        }
        Ok(out)
    }

    pub(super) fn run_watched(&mut self, step: &Step, watch: Watch<'_>) -> Result<(), ModelError> {
        self.take_scales(step);
        self.model.set_rows(&step.embeddings)?;
        let (columns, outputs): (Vec<Column>, Vec<ColumnOutput>) = step.rows.iter().map(column).unzip();
        self.model.run_watched(&columns, &outputs, watch)?;
        Ok(())
    }

    pub(super) fn drop_steps(&mut self) {
        self.steps.clear();
    }

    pub(super) fn reset(&mut self, lora: &[f32]) {
        self.steps.clear();
        self.loras.fill(lora.to_vec());
    }

    pub(super) fn has_state(&self) -> bool {
        self.model.has_state()
    }

    pub(super) fn state_at(&self, seq: u32) -> Option<u32> {
        self.model.state_at(seq)
    }

    /// The cache holds all tokens, so windows are never overwritten.
    pub(super) fn can_go_on(&self, _: u32, _: u32) -> bool {
        true
    }

    pub(super) fn copy_window(&mut self, _: u32, _: u32) {}

    pub(super) fn session_layout(&self) -> String {
        self.model.session_layout()
    }

    pub(super) fn session_bytes(&self, n: usize) -> u64 {
        self.model.session_bytes(n as u32)
    }

    #[allow(clippy::unused_async, reason = "a GPU is waited for")]
    pub(super) async fn save(&mut self, seq: u32, pages: &[u32], n: usize) -> Result<Vec<u8>, ModelError> {
        Ok(self.model.save(seq, pages, n as u32))
    }

    #[allow(clippy::unused_async, reason = "a GPU is waited for")]
    pub(super) async fn put_back(
        &mut self,
        seq: u32,
        pages: &[u32],
        n: usize,
        bytes: &[u8],
    ) -> Result<(), ModelError> {
        self.model.put_back(seq, pages, n as u32, bytes);
        Ok(())
    }

    pub(super) fn memory(&self) -> Memory {
        in_cpu_memory(self.model.n_byte())
    }
}

/// Yields to other tasks of the thread.
async fn breathe() {
    let mut is_first = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut is_first) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}
