//! Requests in the slots of a model on a GPU.

use chaski_runtime::STATE_COPIES;
use chaski_runtime::gpu::{Choose, Column, ColumnOutput, GpuModel, StepOptions};
use chaski_runtime::kernels::sample::SampleParams;
use chaski_schedule::{Change, Input, Limits, Step, Want};
use chaski_text::{Draws, SampleError};

use super::executor::Start;
use crate::error::ModelError;
use crate::run::{Speculation, device_chain};

/// Tokens of a sequence that the device may have chosen and nobody has read.
const MAX_AHEAD: usize = 31;

/// The request in a slot.
#[derive(Clone)]
struct Slot {
    choose: Choose,
    /// Uniform numbers of the draws that were not sent.
    draws: Option<Draws>,
    lora: Vec<f32>,
}

/// The requests in the slots of a model on a GPU.
pub(crate) struct GpuSlots {
    slots: Vec<Slot>,
}

impl GpuSlots {
    pub(crate) fn new(n_seq: u32) -> Self {
        let slot = Slot { choose: Choose::Greedy, draws: None, lora: Vec::new() };
        GpuSlots { slots: vec![slot; n_seq as usize] }
    }

    pub(super) fn limits(model: &GpuModel) -> Limits {
        let c = model.config();
        // States are copied to snapshots. Windows are not, so that prefixes of models with windows are not shared.
        let n_snapshot = match (model.has_state(), model.has_window()) {
            (false, false) => None,
            (true, false) => Some(STATE_COPIES * c.n_seq as usize),
            (_, true) => Some(0),
        };
        Limits {
            n_seq: c.n_seq as usize,
            n_ctx: c.n_ctx as usize,
            page: c.page as usize,
            n_page: c.n_page() as usize,
            max_row: model.step_cols() as usize,
            max_want: model.n_choice() as usize,
            max_output: model.all_cols() as usize,
            max_ahead: MAX_AHEAD,
            max_waiting: usize::MAX,
            n_snapshot,
            max_guess: if model.has_state() { 0 } else { Speculation::MAX },
        }
    }

    pub(super) fn max_under_way(model: &GpuModel) -> usize {
        if model.runs_ahead() && model.takes_step() { 2 } else { 1 }
    }

    pub(super) fn start(&mut self, model: &mut GpuModel, start: Start<'_>) -> Result<(), ModelError> {
        let slot = &mut self.slots[start.seq as usize];
        slot.lora = start.lora.to_vec();
        model.select(start.seq);
        let Some(sampler) = start.sampler else {
            model.clear_adjust();
            return Ok(());
        };
        let chain = device_chain(sampler).map_err(|_| SampleError::NothingLeft)?;
        let mut numbers = sampler.clone();
        numbers.skip_draws(start.n_drawn);
        slot.choose = chain.choose;
        slot.draws = chain.sample.map(|_| numbers.draws());
        // Greedy sequences may be beside others that draw.
        model.set_sampler(&chain.sample.unwrap_or(SampleParams::GREEDY));
        match &chain.adjust {
            Some(adjust) => model.set_adjust(adjust, start.tokens)?,
            None => model.clear_adjust(),
        }
        Ok(())
    }

    pub(super) fn change(model: &mut GpuModel, change: &Change) {
        match change {
            Change::Start { .. } => unreachable!("a start comes with its sampler"),
            Change::Pages { seq, first, pages } => model.set_pages(*seq, *first, pages),
            Change::Copy { from, to } => model.copy_page(*from, *to),
            Change::Keep { seq, snapshot } => model.keep_snapshot(*seq, *snapshot),
            Change::Restore { seq, snapshot, n_token } => {
                model.restore_snapshot(*seq, *snapshot, *n_token);
            }
        }
    }

    pub(super) fn submit(&mut self, model: &mut GpuModel, step: &Step) -> Result<(), ModelError> {
        let (mut columns, mut outputs) = (Vec::new(), Vec::new());
        let mut choose = Choose::Greedy;
        for row in &step.rows {
            let token = match row.input {
                Input::Token(token) => Some(token),
                Input::Chosen => None,
            };
            columns.push(Column { seq: row.seq, token, pos: row.pos });
            outputs.push(match row.want {
                Want::Nothing => ColumnOutput::Nothing,
                Want::Choose => ColumnOutput::Choice,
                Want::Logits => ColumnOutput::Logits,
                Want::Hidden => ColumnOutput::Hidden,
            });
            let slot = &mut self.slots[row.seq as usize];
            if let (Want::Choose, Choose::Sample) = (row.want, slot.choose) {
                choose = Choose::Sample;
                if let Some(draws) = &mut slot.draws {
                    let numbers: Vec<f32> = draws.take(step.repeat as usize).collect();
                    model.select(row.seq);
                    model.set_draws(&numbers);
                }
            }
        }
        let options = StepOptions { repeat: step.repeat, n_planned: step.n_planned, choose };
        Ok(model.send_step(&columns, &outputs, options)?)
    }

    /// Scales of the LoRAs of a slot.
    pub(super) fn lora(&self, seq: u32) -> &[f32] {
        &self.slots[seq as usize].lora
    }
}
