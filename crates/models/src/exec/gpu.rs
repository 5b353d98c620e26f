//! A model on a GPU as an executor.

use chaski_runtime::gpu::{GpuModel, Memory, SampleMode, StepOptions};
use chaski_runtime::kernels::sample::SampleParams;
use chaski_runtime::{Column, ColumnOutput, RowInput};
use chaski_schedule::{Change, Input, Limits, Row, Step, Want};
use chaski_text::{Draws, SampleError, Sampler};

use super::MAX_DRAFT;
use super::chain::device_chain;
use super::executor::{Outputs, Start};
use crate::error::ModelError;

/// Maximum number of unread tokens chosen by the device, per sequence.
const MAX_AHEAD: usize = 31;

/// The request in a slot.
#[derive(Clone)]
struct Slot {
    choose: SampleMode,
    /// Uniform numbers of the draws not yet uploaded.
    draws: Option<Draws>,
    lora: Vec<f32>,
}

/// A model on a GPU, and the requests in its slots.
pub(crate) struct GpuExecutor {
    model: GpuModel,
    slots: Vec<Slot>,
}

impl GpuExecutor {
    pub(super) fn new(model: GpuModel, lora: Vec<f32>) -> Self {
        let n_seq = model.config().n_seq as usize;
        let slot = Slot { choose: SampleMode::Greedy, draws: None, lora };
        GpuExecutor { model, slots: vec![slot; n_seq] }
    }

    pub(super) fn model(&self) -> &GpuModel {
        &self.model
    }

    pub(super) fn model_mut(&mut self) -> &mut GpuModel {
        &mut self.model
    }

    pub(super) fn limits(&self) -> Limits {
        let c = self.model.config();
        let n_snapshot = self.model.n_snapshot() as usize;
        Limits {
            n_seq: c.n_seq as usize,
            n_ctx: c.n_ctx as usize,
            page: c.page as usize,
            n_page: c.n_page() as usize,
            max_row: self.model.step_cols() as usize,
            max_want: self.model.n_choice() as usize,
            max_output: self.model.all_cols() as usize,
            max_hidden: self.max_hidden(),
            n_device: self.model.n_turn(),
            max_ahead: MAX_AHEAD,
            max_waiting: usize::MAX,
            n_snapshot: (n_snapshot > 0).then_some(n_snapshot),
            whole: self.model.is_encoder(),
            max_draft: if self.model.has_state() { 0 } else { MAX_DRAFT },
        }
    }

    pub(super) fn row_input(&self) -> RowInput {
        self.model.row_input()
    }

    pub(super) fn rows(&self, is_alone: bool) -> usize {
        self.model.prompt_piece(is_alone) as usize
    }

    pub(super) fn max_columns(&self) -> usize {
        self.model.config().max_col as usize
    }

    pub(super) fn max_logits(&self) -> usize {
        self.model.all_cols() as usize
    }

    pub(super) fn max_hidden(&self) -> usize {
        self.model.hidden_cols() as usize
    }

    pub(super) fn max_repeat(&self) -> u32 {
        self.model.max_repeat()
    }

    pub(super) fn takes_step(&self) -> bool {
        self.model.takes_step()
    }

    pub(super) fn max_under_way(&self) -> usize {
        if self.model.runs_ahead() && self.model.takes_step() { self.model.max_steps() } else { 1 }
    }

    pub(super) fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str> {
        device_chain(sampler).map(drop)
    }

    pub(super) fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        let (seq, slot) = (start.seq, &mut self.slots[start.seq as usize]);
        slot.lora = start.lora.to_vec();
        (slot.choose, slot.draws) = (SampleMode::Greedy, None);
        let Some(sampler) = start.sampler else {
            self.model.clear_adjust(seq);
            return Ok(());
        };
        let chain = device_chain(sampler).map_err(|_| SampleError::NothingLeft)?;
        let mut numbers = sampler.clone();
        numbers.skip_draws(start.n_drawn);
        slot.choose = chain.choose;
        slot.draws = chain.sample.map(|_| numbers.draws());
        // A greedy sequence may run beside sampling ones.
        self.model.set_sampler(seq, &chain.sample.unwrap_or(SampleParams::GREEDY));
        match &chain.adjust {
            Some(adjust) => self.model.set_adjust(seq, adjust, start.tokens)?,
            None => self.model.clear_adjust(seq),
        }
        Ok(())
    }

    pub(super) fn change(&mut self, change: &Change) {
        match change {
            Change::Start { .. } => unreachable!("a start comes with its sampler"),
            Change::Pages { seq, first, pages } => self.model.set_pages(*seq, *first, pages),
            Change::Copy { from, to } => self.model.copy_page(*from, *to),
            Change::Keep { seq, snapshot, n_token } => self.model.keep_snapshot(*seq, *snapshot, *n_token),
            Change::Restore { seq, snapshot, n_token } => {
                self.model.restore_snapshot(*seq, *snapshot, *n_token);
            }
        }
    }

    pub(super) fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        // Not before: columns of an earlier step may wait.
        for run in step.rows.chunk_by(|a, b| a.seq == b.seq) {
            self.model.set_lora_scales(run[0].seq, &self.slots[run[0].seq as usize].lora);
        }
        if !step.embeddings.is_empty() {
            self.model.set_rows(&step.embeddings)?;
        }
        let mut choose = SampleMode::Greedy;
        for row in step.rows.iter().filter(|row| matches!(row.want, Want::Choose | Want::ChooseMasked)) {
            let slot = &mut self.slots[row.seq as usize];
            choose = choose.max(slot.choose);
            if slot.choose > SampleMode::Greedy {
                let draws = slot.draws.iter_mut().flat_map(|draws| draws.take(step.repeat as usize));
                self.model.set_draws(row.seq, &draws.collect::<Vec<f32>>());
            }
        }
        let (columns, outputs): (Vec<Column>, Vec<ColumnOutput>) = step.rows.iter().map(column).unzip();
        let options = StepOptions { repeat: step.repeat, n_planned: step.n_planned, choose };
        Ok(self.model.send_step(&columns, &outputs, options)?)
    }

    pub(super) fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError> {
        Ok(self.model.mask_step(masks)?)
    }

    pub(super) async fn flush(&mut self) -> Result<(), ModelError> {
        Ok(self.model.flush().await?)
    }

    /// Number of unread steps.
    pub(super) fn n_step(&self) -> usize {
        self.model.n_step()
    }

    pub(super) async fn read(&mut self) -> Result<Outputs, ModelError> {
        let out = self.model.read_step().await?;
        Ok(Outputs { chosen: out.chosen, logits: out.logits, hidden: out.hidden })
    }

    pub(super) fn drop_steps(&mut self) {
        self.model.drop_steps();
    }

    pub(super) fn reset(&mut self, lora: &[f32]) {
        self.model.drop_steps();
        let slot = Slot { choose: SampleMode::Greedy, draws: None, lora: lora.to_vec() };
        self.slots.fill(slot);
        (0..self.slots.len() as u32).for_each(|seq| self.model.clear_adjust(seq));
    }

    pub(super) fn has_state(&self) -> bool {
        self.model.has_state()
    }

    pub(super) fn state_at(&self, seq: u32) -> Option<u32> {
        self.model.state_at(seq)
    }

    pub(super) fn can_go_on(&self, top: u32, pos: u32) -> bool {
        self.model.can_go_on(top, pos)
    }

    pub(super) fn copy_window(&mut self, from: u32, to: u32) {
        if self.model.has_window() {
            self.model.copy_window(from, to);
        }
    }

    pub(super) fn session_layout(&self) -> String {
        self.model.snapshot_layout()
    }

    fn pages_of(&self, n: usize) -> usize {
        n.div_ceil(self.model.config().page as usize)
    }

    pub(super) fn session_bytes(&self, n: usize) -> u64 {
        self.model.snapshot_bytes(self.pages_of(n) as u32)
    }

    pub(super) async fn save(&mut self, seq: u32, pages: &[u32], n: usize) -> Result<Vec<u8>, ModelError> {
        let n_page = self.pages_of(n);
        Ok(self.model.snapshot(seq, &pages[..n_page]).await?)
    }

    pub(super) async fn put_back(
        &mut self,
        seq: u32,
        pages: &[u32],
        n: usize,
        bytes: &[u8],
    ) -> Result<(), ModelError> {
        let n_page = self.pages_of(n);
        Ok(self.model.put_back(seq, &pages[..n_page], n as u32, bytes).await?)
    }

    pub(super) fn memory(&self) -> Memory {
        self.model.memory().clone()
    }
}

/// A row in the runtime's terms.
pub(super) fn column(row: &Row) -> (Column, ColumnOutput) {
    let column = match row.input {
        Input::Token(token) => Column::token(row.seq, token, row.pos),
        Input::Chosen => Column::chosen(row.seq, row.pos),
        Input::Embedding(i) => Column::row(row.seq, i, row.pos),
    };
    let output = match row.want {
        Want::Nothing => ColumnOutput::Nothing,
        Want::Choose => ColumnOutput::Choice,
        Want::ChooseMasked => ColumnOutput::MaskedChoice,
        Want::Logits => ColumnOutput::Logits,
        Want::Hidden => ColumnOutput::Hidden,
    };
    (Column { components: row.components, ..column }, output)
}
