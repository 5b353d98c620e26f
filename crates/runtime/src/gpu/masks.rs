//! Masks of allowed tokens, for columns of a step that choose under one.
//!
//! A step is sent up to the logits of such columns. The CPU computes the masks meanwhile; they and the choices follow
//! in a second submission. Steps without masks take one, as before.

use chaski_kernels::ops::mask;

use super::model::GpuModel;
use super::picks::PiecePicks;
use super::sent::{Sent, Steps};
use super::tape::Tape;
use crate::error::RuntimeError;

impl Sent {
    /// True while masks are missing.
    pub(super) fn waits(&self) -> bool {
        self.picks.n_masked() > 0 && self.masks.is_none()
    }
}

impl Steps {
    /// Steps that wait for masks: none or one.
    pub(super) fn n_waiting(&self) -> u64 {
        self.0.iter().filter(|step| step.waits()).count() as u64
    }
}

impl GpuModel {
    /// Provides the masks of the newest step, of all columns with
    /// [`ColumnOutput::MaskedChoice`](crate::ColumnOutput::MaskedChoice) in order: bit `t % 32` of word `t / 32` is 1
    /// if token `t` is allowed. No other step can be sent before that.
    ///
    /// # Errors
    /// Device errors.
    ///
    /// # Panics
    /// If no step waits for masks, or they have another size.
    pub fn mask_step(&mut self, masks: &[u32]) -> Result<(), RuntimeError> {
        let mut step = self.steps.0.pop_back().filter(Sent::waits).expect("the newest step waits for masks");
        let n_word = (step.picks.n_masked() * mask::n_word(self.n_vocab)) as usize;
        assert_eq!(masks.len(), n_word, "words of the masks of {} columns", step.picks.n_masked());
        step.masks = Some(masks.to_vec());
        if let Some(picks) = step.held.take() {
            let mut tape = Tape::new(self.recorder());
            self.record_outputs(&mut tape, &step, &picks);
            self.record_readback(&mut tape, &mut step);
            let index = self.submit_end(tape, &mut step);
            self.submitted(&mut step, index);
        }
        self.send_pieces(&mut step)?;
        self.note_chosen(&step);
        self.steps.0.push_back(step);
        self.gpu.check()
    }

    /// Uploads the masks of a piece and applies them to the first rows of its logits.
    pub(super) fn record_masks(&self, tape: &mut Tape<'_>, step: &Sent, picks: &PiecePicks) {
        let n_word = mask::n_word(self.n_vocab) as usize;
        let of = |n: u32| n as usize * n_word;
        let masks = step.masks.as_ref().expect("choices are recorded once there are masks");
        let masks = &masks[of(picks.masks_at)..][..of(picks.n_masked)];
        // The queue orders the write after all earlier submissions and before the one being recorded.
        self.write_main(&self.buffers.masks, 0, bytemuck::cast_slice(masks));
        tape.run(&self.ready.mask, picks.n_masked);
    }
}
