//! Families whose first layers are dense and whose other layers have experts, by the keys that they have in common.

use chaski_graph::{Act, Gate, Routing};

use super::{Experts, FeedForward, Shared, routing};
use crate::build::Builder;
use crate::error::ModelError;

/// What the keys say of all layers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Mixture {
    /// Layers before the first with experts.
    pub(crate) n_dense: u32,
    /// From there on, every layer of so many has experts: the last of them.
    pub(crate) step: u32,
    /// Width of an expert; `None`: that of the layer's feed-forward part.
    pub(crate) n_ff: Option<u32>,
    /// Experts that all tokens use, which are one.
    pub(crate) n_shared: Option<u32>,
    /// Width that the file gives that one, if it does.
    pub(crate) shared_ff: Option<u32>,
    /// How experts are chosen.
    pub(crate) routing: Routing,
}

impl Mixture {
    /// Reads the keys; `gate` where they name none.
    ///
    /// # Errors
    /// [`ModelError::Metadata`] for mistyped keys, and as [`routing`].
    pub(crate) fn new(b: &Builder<'_>, gate: Gate) -> Result<Self, ModelError> {
        Ok(Mixture {
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

    /// The experts of a layer. The shared one is as wide as the file says, else as so many experts.
    ///
    /// # Errors
    /// [`ModelError::Config`] for more shared experts than can be.
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
