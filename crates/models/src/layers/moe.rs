//! Families with dense layers first and MoE layers after them, configured by common keys.

use chaski_graph::{Act, Gate, Routing};

use super::{Experts, FeedForward, Shared, routing};
use crate::build::Builder;
use crate::error::ModelError;

/// MoE metadata of a model.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moe {
    /// Number of leading dense layers.
    pub(crate) n_dense: u32,
    /// After those, the last of every `step` layers is MoE.
    pub(crate) step: u32,
    /// Width of an expert; `None`: that of the layer's feed-forward part.
    pub(crate) n_ff: Option<u32>,
    /// Number of shared experts, stored as one.
    pub(crate) n_shared: Option<u32>,
    /// Width of the shared expert, if the file gives it.
    pub(crate) shared_ff: Option<u32>,
    /// Routing parameters.
    pub(crate) routing: Routing,
}

impl Moe {
    /// Reads the keys; `gate` if they specify none.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for mistyped keys, and as [`routing`].
    pub(crate) fn new(b: &Builder<'_>, gate: Gate) -> Result<Self, ModelError> {
        Ok(Moe {
            n_dense: b.u32("leading_dense_block_count")?.unwrap_or(0),
            step: 1,
            n_ff: b.u32("expert_feed_forward_length")?.filter(|n| *n > 0),
            n_shared: b.u32("expert_shared_count")?,
            shared_ff: b.u32("expert_shared_feed_forward_length")?.filter(|n| *n > 0),
            routing: routing(b, gate)?,
        })
    }

    /// The layer has experts.
    pub(crate) fn has_experts(&self, layer: usize) -> bool {
        layer >= self.n_dense as usize && (layer + 1) % self.step.max(1) as usize == 0
    }

    /// The experts of a layer. The shared one is as wide as the file says, or as the shared experts together.
    ///
    /// # Errors
    /// [`ModelError::Config`] for an invalid number of shared experts.
    pub(crate) fn experts(&self, b: &Builder<'_>, layer: usize) -> Result<Experts, ModelError> {
        let n_ff = self.n_ff.unwrap_or(b.config.n_ff[layer]);
        let n_shared = self.n_shared.unwrap_or(0);
        let wide = self.shared_ff.or_else(|| n_ff.checked_mul(n_shared));
        let shared = match wide.filter(|n| *n <= 1 << 22) {
            Some(0) => Shared::None,
            Some(n) => Shared::Plain(n),
            None => return Err(b.wrong("expert_shared_count", n_shared, "must be less")),
        };
        Ok(Experts { routing: self.routing, shared, ..Experts::new(b, n_ff) })
    }

    /// The feed-forward part of a layer.
    ///
    /// # Errors
    /// As [`Self::experts`].
    pub(crate) fn layer(&self, b: &Builder<'_>, layer: usize) -> Result<FeedForward, ModelError> {
        Ok(match self.has_experts(layer) {
            true => FeedForward::Experts(self.experts(b, layer)?),
            false => FeedForward::Gated(Act::Swiglu),
        })
    }
}
