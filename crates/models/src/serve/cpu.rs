//! A model on the CPU as an executor.

use std::collections::VecDeque;

use chaski_runtime::cpu::CpuModel;
use chaski_schedule::{Input, Limits, Row, Step, Want};

use super::executor::{Outputs, Start};
use crate::error::ModelError;
use crate::run::Speculation;

/// Tokens of a page: the unit in which the scheduler counts. Every slot has a cache of its own, in one piece.
const PAGE: u32 = 64;
/// Rows of a step at most, so that no step takes long.
const MAX_ROW: usize = 64;

/// A model on the CPU. Tokens are chosen from logits; slots share no prefixes.
pub(super) struct CpuExecutor {
    model: CpuModel,
    n_seq: u32,
    n_vocab: u32,
    /// Scales of the LoRAs of each slot, and those that the model has.
    loras: Vec<Vec<f32>>,
    lora: Vec<f32>,
    steps: VecDeque<Step>,
    max_waiting: usize,
}

impl CpuExecutor {
    pub(super) fn new(
        model: CpuModel,
        (n_seq, n_vocab): (u32, u32),
        lora: Vec<f32>,
        max_waiting: usize,
    ) -> Self {
        let loras = vec![lora.clone(); n_seq as usize];
        CpuExecutor { model, n_seq, n_vocab, loras, lora, steps: VecDeque::new(), max_waiting }
    }

    pub(super) fn limits(&self) -> Limits {
        let n_ctx = self.model.n_ctx();
        Limits {
            n_seq: self.n_seq as usize,
            n_ctx: n_ctx as usize,
            page: PAGE as usize,
            n_page: (self.n_seq * n_ctx.div_ceil(PAGE)) as usize,
            max_row: MAX_ROW,
            max_want: self.n_seq as usize,
            max_ahead: 0,
            max_waiting: self.max_waiting,
            // Nothing is ever found in the caches of other requests.
            n_snapshot: Some(0),
            max_guess: if self.model.has_state() { 0 } else { Speculation::MAX },
        }
    }

    pub(super) fn start(&mut self, start: Start<'_>) {
        self.loras[start.seq as usize] = start.lora.to_vec();
    }

    pub(super) fn submit(&mut self, step: &Step) {
        self.steps.push_back(step.clone());
    }

    /// Runs the oldest step.
    pub(super) fn read(&mut self) -> Result<Outputs, ModelError> {
        let mut out = Outputs::default();
        let Some(step) = self.steps.pop_front() else { return Ok(out) };
        for rows in step.rows.chunk_by(|a, b| a.seq == b.seq) {
            if rows.iter().any(|r| r.want == Want::Hidden) {
                let all = self.run(rows, true)?;
                let each = all.chunks_exact(all.len() / rows.len());
                let wanted = each.zip(rows).filter(|(_, r)| r.want == Want::Hidden);
                wanted.for_each(|(row, _)| out.hidden.extend_from_slice(row));
                continue;
            }
            let logits = self.run(rows, false)?;
            match rows.last().map(|r| r.want) {
                Some(Want::Logits) => out.logits.extend(logits),
                Some(Want::Choose) => unreachable!("the service chooses"),
                Some(Want::Nothing | Want::Hidden) | None => {}
            }
        }
        Ok(out)
    }

    /// Runs rows of one sequence; the logits of the last, or the hidden states of all.
    fn run(&mut self, rows: &[Row], hidden: bool) -> Result<Vec<f32>, ModelError> {
        let Row { seq, pos, .. } = rows[0];
        let lora = &self.loras[seq as usize];
        if *lora != self.lora {
            self.model.set_adapter_scales(lora);
            self.lora.clone_from(lora);
        }
        let token = |row: &Row| match row.input {
            Input::Token(token) => token,
            Input::Chosen => unreachable!("the service knows what it chose"),
        };
        let tokens: Vec<u32> = rows.iter().map(token).collect();
        self.model.select(seq);
        if hidden {
            return Ok(self.model.eval_hidden(&tokens, pos)?);
        }
        let logits = self.model.eval(&tokens, pos, false)?;
        debug_assert_eq!(logits.len(), self.n_vocab as usize);
        Ok(logits)
    }
}
