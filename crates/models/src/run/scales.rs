//! How much each adapter of the model counts: the same for all sequences, unless one of them is adapted by itself.

use super::runner::Runner;
use crate::adapter::check_scales;
use crate::error::{AdapterError, ModelError};
use crate::exec::Start;

impl Runner {
    /// How much each adapter counts where nothing else is said.
    pub fn adapter_scales(&self) -> &[f32] {
        &self.scales
    }

    /// How much each adapter counts for a sequence.
    pub fn adapter_scales_of(&self, seq: usize) -> &[f32] {
        &self.seqs[seq].scales
    }

    /// Sets how much each adapter counts, for all sequences.
    ///
    /// # Errors
    /// As [`Self::adapt`].
    pub fn set_adapter_scales(&mut self, scales: &[f32]) -> Result<(), ModelError> {
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

    /// Sets how much each adapter counts for the selected sequence. If that changes anything its tokens are forgotten: their
    /// keys and values were made with other matrices.
    ///
    /// # Errors
    /// [`ModelError::Adapter`] for another number of scales than there are adapters, or one that is not finite.
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

    /// Whether these can be scales of the model's adapters.
    pub(super) fn check_scales(&self, scales: &[f32]) -> Result<(), AdapterError> {
        check_scales(self.scales.len(), scales)
    }

    /// The columns whose sequences have the same scales, by their numbers: only these can run together.
    pub(super) fn alike(&self, columns: &[(usize, u32)]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (i, (seq, _)) in columns.iter().enumerate() {
            let scales = self.adapter_scales_of(*seq);
            match groups.iter_mut().find(|g| self.adapter_scales_of(columns[g[0]].0) == scales) {
                Some(group) => group.push(i),
                None => groups.push(vec![i]),
            }
        }
        groups
    }
}
