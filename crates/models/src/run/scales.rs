//! LoRA scales: common to all sequences, or per sequence.

use super::runner::Runner;
use crate::error::{LoraError, ModelError};
use crate::exec::Start;
use crate::lora::check_scales;

impl Runner {
    /// Default scale of each LoRA.
    pub fn lora_scales(&self) -> &[f32] {
        &self.scales
    }

    /// Scale of each LoRA for a sequence.
    pub fn lora_scales_of(&self, seq: usize) -> &[f32] {
        &self.seqs[seq].scales
    }

    /// Sets the LoRA scales of all sequences.
    ///
    /// # Errors
    /// As [`Self::adapt`].
    pub fn set_lora_scales(&mut self, scales: &[f32]) -> Result<(), ModelError> {
        self.check_scales(scales)?;
        self.scales = scales.to_vec();
        let at = self.at;
        for seq in 0..self.seqs.len() {
            self.at = seq;
            self.adapt(scales)?;
        }
        self.select(at);
        Ok(())
    }

    /// Sets the LoRA scales of the selected sequence. A change clears its tokens, because their keys and values were
    /// computed with other scales.
    ///
    /// # Errors
    /// [`ModelError::Lora`] if the number of scales differs from the number of LoRAs, or a scale is not finite.
    pub fn adapt(&mut self, scales: &[f32]) -> Result<(), ModelError> {
        self.check_scales(scales)?;
        if self.seqs[self.at].scales != scales {
            self.truncate(0);
            self.seqs[self.at].scales = scales.to_vec();
            let seq = self.at as u32;
            self.device.start(Start { seq, sampler: None, tokens: &[], n_drawn: 0, lora: scales })?;
        }
        Ok(())
    }

    /// Checks scales for the model's LoRAs.
    pub(super) fn check_scales(&self, scales: &[f32]) -> Result<(), LoraError> {
        check_scales(self.scales.len(), scales)
    }
}
