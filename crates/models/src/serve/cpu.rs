//! Requests in the slots of a model on the CPU.

use std::collections::VecDeque;
use std::time::Duration;

use chaski_runtime::cpu::CpuModel;
use chaski_schedule::{Input, Limits, Row, Step, Want};

use super::executor::{Outputs, Start};
use crate::error::ModelError;
use crate::run::Speculation;

/// Tokens of a page: the unit in which the scheduler counts. Every slot has a cache of its own, in one piece.
const PAGE: u32 = 64;
/// Rows of a step, as many as the CPU runs in about this time: a page whose only thread it is stays usable.
const MIN_ROW: usize = 4;
const MAX_ROW: usize = 64;
const STEP_TIME: Duration = Duration::from_millis(60);

/// The requests in the slots of a model on the CPU. Tokens are chosen from logits; slots share no prefixes.
pub(crate) struct CpuSlots {
    /// Scales of the LoRAs of each slot.
    loras: Vec<Vec<f32>>,
    steps: VecDeque<Step>,
    /// Rows of the next step.
    rows: usize,
}

impl CpuSlots {
    pub(crate) fn new(n_seq: u32) -> Self {
        CpuSlots { loras: vec![Vec::new(); n_seq as usize], steps: VecDeque::new(), rows: MIN_ROW }
    }

    pub(super) fn limits(model: &CpuModel, n_seq: u32) -> Limits {
        let n_ctx = model.n_ctx();
        Limits {
            n_seq: n_seq as usize,
            n_ctx: n_ctx as usize,
            page: PAGE as usize,
            n_page: (n_seq * n_ctx.div_ceil(PAGE)) as usize,
            max_row: MAX_ROW,
            max_want: n_seq as usize,
            max_output: MAX_ROW.max(n_seq as usize),
            max_ahead: 0,
            max_waiting: usize::MAX,
            // Nothing is ever found in the caches of other requests.
            n_snapshot: Some(0),
            max_guess: if model.has_state() { 0 } else { Speculation::MAX },
        }
    }

    pub(super) fn start(&mut self, start: Start<'_>) {
        self.loras[start.seq as usize] = start.lora.to_vec();
    }

    pub(super) fn submit(&mut self, step: &Step) {
        self.steps.push_back(step.clone());
    }

    /// Rows of the next step at most.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Notes how long a step of so many rows took.
    pub(super) fn ran(&mut self, n_row: usize, took: Duration) {
        if took > STEP_TIME {
            self.rows = (self.rows / 2).max(MIN_ROW);
        } else if n_row >= self.rows && took < STEP_TIME / 3 {
            self.rows = (self.rows * 2).min(MAX_ROW);
        }
    }

    /// Scales of the LoRAs of a slot.
    pub(super) fn lora(&self, seq: u32) -> &[f32] {
        &self.loras[seq as usize]
    }

    /// Takes the oldest step, to run it.
    pub(super) fn pop(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }
}

/// Runs a step whose rows have the same LoRA scales.
pub(super) fn run_step(model: &mut CpuModel, step: &Step) -> Result<Outputs, ModelError> {
    let mut out = Outputs::default();
    for rows in step.rows.chunk_by(|a, b| a.seq == b.seq) {
        let Row { seq, pos, .. } = rows[0];
        let token = |row: &Row| match row.input {
            Input::Token(token) => token,
            Input::Chosen => unreachable!("the service knows the tokens that it chose"),
        };
        let tokens: Vec<u32> = rows.iter().map(token).collect();
        model.select(seq);
        let n_logits = rows.iter().filter(|r| r.want == Want::Logits).count();
        if rows.iter().any(|r| r.want == Want::Hidden) {
            let all = model.eval_hidden(&tokens, pos)?;
            let each = all.chunks_exact(all.len() / rows.len()).zip(rows);
            let wanted = each.filter(|(_, r)| r.want == Want::Hidden);
            wanted.for_each(|(row, _)| out.hidden.extend_from_slice(row));
            continue;
        }
        let logits = model.eval(&tokens, pos, n_logits > 1)?;
        match n_logits {
            0 => {}
            1 => out.logits.extend(logits),
            _ => {
                let each = logits.chunks_exact(logits.len() / rows.len()).zip(rows);
                let wanted = each.filter(|(_, r)| r.want == Want::Logits);
                wanted.for_each(|(row, _)| out.logits.extend_from_slice(row));
            }
        }
    }
    Ok(out)
}
