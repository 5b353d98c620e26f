//! A runner as a scheduler's executor.

use std::sync::Arc;

use chaski_runtime::{RowInput, RuntimeError};
use chaski_schedule::{Change, Found, Limits, Step};
use chaski_text::Sampler;

use super::pages::Pages;
use super::runner::Runner;
use super::sequence::Sequence;
use crate::error::ModelError;
use crate::exec::{Executor, Outputs, Start};
use crate::heads::Heads;
use crate::lora::check_scales;

/// Runs the steps of a scheduler. Sequences run otherwise ([`Runner::prefill`] and others) lose their tokens;
/// [`Executor::forget`] resets the runner to empty sequences.
impl Executor for Runner {
    fn limits(&self) -> Limits {
        self.device.limits()
    }

    fn n_vocab(&self) -> usize {
        Runner::n_vocab(self) as usize
    }

    fn row_input(&self) -> RowInput {
        self.device.row_input()
    }

    fn heads(&self) -> Arc<Heads> {
        self.heads.clone()
    }

    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError> {
        let lora = asked.unwrap_or(self.lora_scales());
        check_scales(self.lora_scales().len(), lora)?;
        Ok(lora.to_vec())
    }

    fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str> {
        self.device.can_choose(sampler)
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        self.serve();
        self.device.start(start)
    }

    fn change(&mut self, change: &Change) -> Result<(), ModelError> {
        self.serve();
        self.device.change(change);
        Ok(())
    }

    fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        self.serve();
        self.device.submit(step)
    }

    fn mask(&mut self, masks: &[u32]) -> Result<(), ModelError> {
        self.device.mask(masks)
    }

    async fn read(&mut self) -> Result<Outputs, ModelError> {
        self.device.read().await
    }

    fn undo(&mut self, error: &ModelError) -> bool {
        let is_undone =
            matches!(error, ModelError::Runtime(RuntimeError::Experts(_))) && self.device.undoes();
        if is_undone {
            self.device.drop_steps();
        }
        is_undone
    }

    async fn recover(&mut self, error: Arc<ModelError>) -> Result<(), Arc<ModelError>> {
        match *error {
            // The device is as good as before.
            ModelError::Runtime(RuntimeError::Experts(_)) => {
                self.device.drop_steps();
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn forget(&mut self) {
        if self.is_served {
            self.forget_all();
        }
    }

    fn rows(&self, is_alone: bool) -> usize {
        self.device.rows(is_alone)
    }

    fn max_under_way(&self) -> usize {
        self.device.max_under_way()
    }

    fn session_name(&self, lora: &[f32]) -> String {
        self.session_of(lora)
    }

    fn session_bytes(&self, n_token: usize) -> u64 {
        Runner::session_bytes(self, n_token)
    }

    async fn read_prefix(&mut self, seq: u32, found: &Found, n_token: usize) -> Result<Vec<u8>, ModelError> {
        // An unused slot carries the state outside pages.
        if let Some(snapshot) = found.snapshot {
            self.change(&Change::Restore { seq, snapshot, n_token: n_token as u32 })?;
        }
        let pages: Vec<u32> = found.pages.iter().copied().chain(found.tail.map(|t| t.0)).collect();
        self.read_session(seq, &pages, n_token).await
    }

    async fn write_prefix(
        &mut self,
        seq: u32,
        found: &Found,
        pages: &[u32],
        n_token: usize,
        bytes: &[u8],
    ) -> Result<(), ModelError> {
        self.write_session(seq, pages, n_token, bytes).await?;
        match found.snapshot {
            Some(snapshot) => self.change(&Change::Keep { seq, snapshot, n_token: n_token as u32 }),
            None => Ok(()),
        }
    }
}

impl Runner {
    /// Switches to the steps of a scheduler, so the sequences lose their tokens.
    pub(crate) fn serve(&mut self) {
        if !self.is_served {
            self.forget_all();
            self.is_served = true;
        }
    }

    /// Clears all sequences and drops steps in flight.
    pub(super) fn forget_all(&mut self) {
        (self.is_served, self.n_sent) = (false, 0);
        self.device.reset(&self.scales);
        let Limits { n_ctx, page, .. } = self.device.limits();
        self.pages = Pages::new(self.seqs.len() as u32, n_ctx.div_ceil(page) as u32);
        for (seq, s) in self.seqs.iter_mut().enumerate() {
            *s = Sequence { scales: std::mem::take(&mut s.scales), ..Sequence::default() };
            let start = Start { seq: seq as u32, sampler: None, tokens: &[], n_drawn: 0, lora: &s.scales };
            self.device.start(start).expect("a start without a sampler cannot fail");
        }
    }
}
