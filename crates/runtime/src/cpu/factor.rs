//! Factors of products: scales of tensors, and LoRA scales, of which each sequence has its own.

use super::{CpuModel, Row};
use crate::graph::WeightId;

/// The factor of each column of a product.
pub(super) enum Factor {
    /// The same for all columns.
    All(f32),
    /// One for each.
    Each(Vec<f32>),
}

impl Factor {
    /// No factor.
    pub(super) const ONE: Factor = Factor::All(1.0);

    /// True if no column changes.
    pub(super) fn is_one(&self) -> bool {
        match self {
            Factor::All(factor) => *factor == 1.0,
            Factor::Each(all) => all.iter().all(|factor| *factor == 1.0),
        }
    }

    /// The factor of a column.
    pub(super) fn of(&self, column: usize) -> f32 {
        match self {
            Factor::All(factor) => *factor,
            Factor::Each(all) => all[column],
        }
    }
}

impl CpuModel {
    /// Sets the LoRA scales of a sequence, indexed by [`LoraScale::of`](crate::graph::LoraScale::of), for steps from
    /// now on.
    ///
    /// # Panics
    /// If there are fewer scales than the graph uses, or no such sequence.
    pub fn set_lora_scales(&mut self, seq: u32, scales: &[f32]) {
        let own = &mut self.loras[seq as usize];
        let n = own.len();
        own.copy_from_slice(&scales[..n]);
    }

    /// The LoRA scale for which a weight stands, of the sequences of these rows; `None` for other weights.
    pub(super) fn lora_factor<'r>(
        &self,
        scale: WeightId,
        rows: impl Iterator<Item = &'r Row>,
    ) -> Option<Factor> {
        let lora = self.graph.lora_scale(scale)?;
        Some(Factor::Each(rows.map(|row| lora.by * self.loras[row.seq as usize][lora.of]).collect()))
    }

    /// The factor of a product with this scale in rows of a step.
    pub(super) fn factor(&self, scale: Option<WeightId>, rows: &[Row]) -> Factor {
        let Some(scale) = scale else { return Factor::ONE };
        self.lora_factor(scale, rows.iter()).unwrap_or_else(|| Factor::All(self.vector(scale)[0]))
    }
}
