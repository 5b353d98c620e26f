//! Sampling on the device: the sampler of each sequence, and adjustments of its logits.

use chaski_kernels::ops::adjust::{self, AdjustParams};
use chaski_kernels::ops::sample::{self, SampleParams};

use super::model::GpuModel;
use crate::error::RuntimeError;

/// Splits values written to a ring of `size` slots from index `first`: (slot, values) up to the end, and from the
/// start.
fn around<T>(size: u32, first: u32, values: &[T]) -> [(u32, &[T]); 2] {
    let at = first & (size - 1);
    let (front, back) = values.split_at(values.len().min((size - at) as usize));
    [(at, front), (0, back)]
}

impl GpuModel {
    /// Sets the parameters of [`SampleMode::Sample`](crate::gpu::SampleMode::Sample) for a sequence.
    pub fn set_sampler(&mut self, seq: u32, params: &SampleParams) {
        let at = 4 * (seq as usize * sample::N_WORD) as u64;
        self.write_main(&self.buffers.sampler, at, bytemuck::cast_slice(&params.words()));
    }

    /// Sets the uniform numbers in [0, 1) for the next draws of a sequence, after all draws in flight: at most
    /// [`sample::N_DRAW`]. Each draw uses one.
    pub fn set_draws(&mut self, seq: u32, draws: &[f32]) {
        assert!(draws.len() <= sample::N_DRAW as usize, "{} draws do not fit", draws.len());
        let base = seq as usize * sample::N_WORD + sample::DRAWS_AT;
        for (at, part) in around(sample::N_DRAW, self.ring_at[seq as usize], draws) {
            if !part.is_empty() {
                let at = 4 * (base + at as usize) as u64;
                self.write_main(&self.buffers.sampler, at, bytemuck::cast_slice(part));
            }
        }
    }

    /// Enables adjustments of a sequence's logits, in place, before each choice of a token, until
    /// [`Self::clear_adjust`].
    ///
    /// `recent` are the tokens so far, newest last; chosen tokens follow them on the device, so penalties cover both.
    /// Call it again when the slot gets another sequence.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for too many biases or a window longer than the ring.
    pub fn set_adjust(
        &mut self,
        seq: u32,
        params: &AdjustParams,
        recent: &[u32],
    ) -> Result<(), RuntimeError> {
        let ring = self.config.ring;
        let window = u64::from(ring.min(adjust::MAX_WINDOW));
        for (what, found, limit) in [
            ("biases of logits", params.bias.len() as u64, adjust::MAX_BIAS as u64),
            ("tokens that penalties look back on", params.last_n.into(), window),
        ] {
            if found > limit {
                return Err(RuntimeError::Limit { what, found, limit });
            }
        }
        // The tokens so far replace older ones in the ring, as if they had been chosen. Readbacks in flight have been
        // copied by then: the queue preserves order.
        let n = recent.len().min(params.last_n as usize);
        let (tail, first) = (&recent[recent.len() - n..], self.ring_at[seq as usize].wrapping_sub(n as u32));
        for (at, part) in around(ring, first, tail) {
            if !part.is_empty() {
                let at = 4 * u64::from(seq * ring + at);
                self.write_main(&self.buffers.ring, at, bytemuck::cast_slice(part));
            }
        }
        self.write_adjust(seq, &params.words(first));
        self.adjusts[seq as usize] = true;
        Ok(())
    }

    /// Disables adjustments of a sequence's logits.
    pub fn clear_adjust(&mut self, seq: u32) {
        if std::mem::take(&mut self.adjusts[seq as usize]) {
            // Other sequences may still be adjusted.
            self.write_adjust(seq, &[0; adjust::N_WORD]);
        }
    }

    fn write_adjust(&self, seq: u32, words: &[u32; adjust::N_WORD]) {
        let at = 4 * (seq as usize * adjust::N_WORD) as u64;
        self.write_main(&self.buffers.adjust, at, bytemuck::cast_slice(words));
    }

    /// Discards tokens that a profile chose in the first sequence: the device continues from the previous ring
    /// position.
    pub(crate) fn forget_choices(&self) {
        let at = 4 * self.config.choice().seq_at(0) as u64;
        self.write_main(&self.buffers.step, at, bytemuck::bytes_of(&self.ring_at[0]));
    }
}
