//! Experts of other machines' models on the CPU.

use std::sync::Arc;

use ggml_format::GgmlType;

use super::{CpuConfig, CpuModel, Threads};
use crate::error::RuntimeError;
use crate::experts::{CANARIES, ExpertCall, ExpertError, digest};
use crate::graph::{ExpertLayer, Graph};
use crate::tensors::Tensors;

/// Options of experts on the CPU. To compute the bits of a model they must be those of the model, apart from threads.
#[derive(Copy, Clone, Debug)]
pub struct WorkerConfig {
    /// Threads; results do not depend on them.
    pub threads: Threads,
    /// As [`CpuConfig::map`].
    pub map: bool,
    /// As [`CpuConfig::repack`].
    pub repack: bool,
    /// As [`CpuModel::set_inputs_in_16_bits`]; always with `repack`.
    pub inputs_in_16_bits: bool,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        WorkerConfig { threads: Threads::default(), map: true, repack: true, inputs_in_16_bits: true }
    }
}

/// Some experts of a model, which computes calls with the bits that the model itself would.
pub struct ExpertWorker {
    model: CpuModel,
    /// Of the graph's values, those that a call has.
    values: Vec<Vec<f32>>,
}

impl ExpertWorker {
    /// A worker for the experts of a model, without any.
    ///
    /// # Errors
    /// [`RuntimeError::Format`], [`RuntimeError::Threads`].
    pub fn new(graph: &Graph, config: WorkerConfig) -> Result<Self, RuntimeError> {
        let WorkerConfig { threads, map, repack, inputs_in_16_bits } = config;
        let kv = (GgmlType::F32, GgmlType::F32);
        let config = CpuConfig { n_ctx: 1, n_seq: 1, page: 1, pool: None, kv, threads, map, repack };
        let graph = Graph { kv: Vec::new(), states: Vec::new(), ..graph.clone() };
        let values = vec![Vec::new(); graph.widths.len()];
        let mut model = CpuModel::of_experts(graph, config)?;
        model.set_inputs_in_16_bits(inputs_in_16_bits || repack);
        Ok(ExpertWorker { model, values })
    }

    /// The layers of experts that can be computed by themselves.
    pub fn layers(&self) -> &[ExpertLayer] {
        self.model.experts()
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.model.graph
    }

    /// Loads an expert, or loads it again.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`]; [`ExpertError::Size`] for an unknown expert; [`RuntimeError::Tensor`].
    pub async fn add(&mut self, layer: u16, expert: u16, tensors: &impl Tensors) -> Result<(), RuntimeError> {
        self.model.add_expert(layer, expert, tensors).await
    }

    /// Frees an expert; false if it was not there.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`], [`ExpertError::Size`].
    pub fn remove(&mut self, layer: u16, expert: u16) -> Result<bool, ExpertError> {
        self.model.remove_expert(layer, expert)
    }

    /// True if an expert is loaded.
    pub fn has(&self, layer: u16, expert: u16) -> bool {
        self.model.has_expert(layer, expert)
    }

    /// Bytes of the loaded experts.
    pub fn n_byte(&self) -> u64 {
        self.model.parts.n_byte()
    }

    /// Computes a call: `[n_pair, width]`.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`]; [`ExpertError::NotHere`]; [`ExpertError::Size`] or [`ExpertError::Order`] for a call
    /// that is not one of the layer.
    pub fn compute(&mut self, call: &ExpertCall) -> Result<Vec<f32>, ExpertError> {
        let (graph, layer) = (self.model.graph.clone(), self.model.expert_layer(call.layer)?);
        call.check(&graph, &layer)?;
        self.model.check_experts(&layer, call.by_expert().map(|pairs| pairs[0].expert))?;
        let (n_in, _) = layer.widths(&graph);
        self.model.set_n_row(call.x.len() / n_in.max(1) as usize);
        self.values[layer.x.0].clone_from(&call.x);
        let out = self.model.expert_rows(&graph, &layer, &call.pairs, &mut self.values);
        self.values[layer.x.0].clear();
        Ok(out)
    }

    /// The sha256 of an expert's rows for fixed inputs ([`ExpertCall::canary`]) of few and many columns: workers with
    /// equal digests compute equal bits.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`], [`ExpertError::NotHere`], [`ExpertError::Size`].
    pub fn canary(&mut self, layer: u16, expert: u16) -> Result<[u8; 32], ExpertError> {
        let (graph, l) = (self.model.graph.clone(), self.model.expert_layer(layer)?);
        let mut rows = Vec::new();
        for n_col in CANARIES {
            rows.push(self.compute(&ExpertCall::canary(&graph, &l, expert, n_col))?);
        }
        Ok(digest(rows.iter().map(Vec::as_slice)))
    }
}
