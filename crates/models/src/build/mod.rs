//! Building graphs: the common metadata, and adding tensors and operations.

mod adapted;
mod config;
mod keys;
mod operations;
mod reads;
mod tensors;

pub(crate) use adapted::Loras;
pub use config::Config;
pub use reads::Reads;
pub(crate) use tensors::Rows;

use std::collections::BTreeMap;

use chaski_graph::{Graph, WeightId};
use chaski_runtime::RuntimeError;
use ggml_format::{Metadata, TensorInfo};

use crate::error::ModelError;

/// Tensors of a product.
#[derive(Copy, Clone, Debug)]
pub struct Linear {
    pub(super) weight: WeightId,
    pub(super) bias: Option<WeightId>,
    pub(super) scale: Option<WeightId>,
}

/// Adds tensors and operations to a graph.
pub struct Builder<'a> {
    /// The metadata.
    pub metadata: &'a Metadata,
    /// The common metadata.
    pub config: &'a Config,
    /// Divisors of the RoPE frequencies.
    pub rope_factors: Option<Vec<f32>>,
    /// Scalar tensors that are factors of the graph, by name.
    pub scalars: BTreeMap<String, f32>,
    /// Context size.
    n_ctx: u32,
    pub(super) graph: Graph,
    pub(super) loras: Loras<'a>,
    /// Optional tensors that the family reads.
    reads: Reads,
    tensor: &'a dyn Fn(&str) -> Option<&'a TensorInfo>,
}

impl<'a> Builder<'a> {
    /// An empty graph for a context of `n_ctx` tokens; `tensor` finds the model's tensors.
    pub fn new(
        metadata: &'a Metadata,
        config: &'a Config,
        n_ctx: u32,
        rope_factors: Option<Vec<f32>>,
        scalars: BTreeMap<String, f32>,
        tensor: &'a dyn Fn(&str) -> Option<&'a TensorInfo>,
    ) -> Self {
        Builder {
            metadata,
            config,
            rope_factors,
            scalars,
            n_ctx,
            graph: Graph::default(),
            loras: Loras::default(),
            reads: Reads::USUAL,
            tensor,
        }
    }

    /// Sets the optional tensors that the family reads, if not the usual ones.
    pub(crate) fn reads(&mut self, reads: Reads) {
        self.reads = reads;
    }

    /// Applies LoRAs to the products added from now on.
    pub(crate) fn adapt(&mut self, loras: Loras<'a>) {
        self.loras = loras;
    }

    /// True if a tensor is used, but its LoRAs are not applied.
    pub(crate) fn leaves_unadapted(&self, tensor: &str) -> bool {
        !self.loras.has(tensor) && self.graph.weights.iter().any(|w| w.name == tensor)
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        Graph { n_layer: self.config.n_layer as usize, ..self.graph }
    }

    /// Limits the context to the positions that the model has.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] if the context is longer.
    pub fn limit_context(&self, limit: u32) -> Result<(), ModelError> {
        let (what, found) = ("tokens of the context", u64::from(self.n_ctx));
        if self.n_ctx > limit {
            return Err(RuntimeError::Limit { what, found, limit: limit.into() }.into());
        }
        Ok(())
    }
}
