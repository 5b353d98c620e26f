//! Layers of experts on the CPU, pair by pair: the pairs of a step that are computed here while others are away, or
//! those of a call.

use std::sync::Arc;

use ggml_format::product::Columns;

use super::CpuModel;
use super::factor::Factor;
use super::matrix::Parts;
use crate::error::RuntimeError;
use crate::experts::{ExpertError, Pair};
use crate::graph::{ExpertLayer, Graph, Op, WeightId};
use crate::tensors::Tensors;

/// The layers of experts that can be computed elsewhere; none in a browser, where nothing computes them yet, and every
/// page would download the code.
pub(super) fn layers_of(graph: &Graph) -> Arc<[ExpertLayer]> {
    if cfg!(target_arch = "wasm32") { Arc::default() } else { graph.experts().into() }
}

/// The parts of layers that are loaded expert by expert.
///
/// # Errors
/// [`ExpertError::NoLayer`].
pub(super) fn parts_of(graph: &Graph, all: &[ExpertLayer], layers: &[u16]) -> Result<Parts, ExpertError> {
    let has = |layer: &&u16| all.iter().any(|l| l.layer == **layer);
    match layers.iter().find(|layer| !has(layer)) {
        Some(&layer) => Err(ExpertError::NoLayer { layer }),
        None => Ok(Parts::of(graph, all.iter().filter(|l| layers.contains(&l.layer)))),
    }
}

/// A product of a layer of experts.
struct ById {
    weight: WeightId,
    bias: Option<WeightId>,
    scale: Option<WeightId>,
    width: usize,
    n_expert: usize,
}

impl CpuModel {
    /// The layers of experts that can be computed elsewhere.
    pub fn experts(&self) -> &[ExpertLayer] {
        &self.experts
    }

    pub(super) fn expert_layer(&self, layer: u16) -> Result<ExpertLayer, ExpertError> {
        let found = self.experts.iter().find(|l| l.layer == layer);
        found.cloned().ok_or(ExpertError::NoLayer { layer })
    }

    /// Loads an expert of a layer that was loaded without ([`Self::load_without`]), or loads it again.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`] for a layer that has its experts, or none; [`ExpertError::Size`] for an unknown expert;
    /// [`RuntimeError::Tensor`].
    pub async fn add_expert(
        &mut self,
        layer: u16,
        expert: u16,
        tensors: &impl Tensors,
    ) -> Result<(), RuntimeError> {
        let layer = self.expert_layer(layer)?;
        let how = (self.config.map, self.config.repack);
        let workers = self.batch_workers.as_ref().unwrap_or(&self.workers);
        self.parts.add((&self.graph, &layer), expert, how, workers, tensors).await
    }

    /// Frees an expert that was added; false if it was not there.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`], [`ExpertError::Size`] likewise.
    pub fn remove_expert(&mut self, layer: u16, expert: u16) -> Result<bool, ExpertError> {
        let layer = self.expert_layer(layer)?;
        self.parts.remove((&self.graph, &layer), expert)
    }

    /// True if an expert can be computed here.
    pub fn has_expert(&self, layer: u16, expert: u16) -> bool {
        let found = self.experts.iter().find(|l| l.layer == layer && u32::from(expert) < l.n_expert);
        found.is_some_and(|l| self.parts.holds(&l.weights(&self.graph), expert.into()))
    }

    /// # Errors
    /// [`ExpertError::NotHere`] for the first of these experts whose weights are not loaded.
    pub(super) fn check_experts(
        &self,
        layer: &ExpertLayer,
        experts: impl IntoIterator<Item = u16>,
    ) -> Result<(), ExpertError> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let weights = layer.weights(&self.graph);
        match experts.into_iter().find(|e| !self.parts.holds(&weights, usize::from(*e))) {
            Some(expert) => Err(ExpertError::NotHere { layer: layer.layer, expert }),
            None => Ok(()),
        }
    }

    /// # Errors
    /// [`ExpertError::NotHere`] if some experts are loaded one by one: their layers need [`Self::run_step_away`].
    pub(super) fn check_whole(&self) -> Result<(), ExpertError> {
        // In a browser it is always empty (`layers_of`), which the compiler does not see.
        if cfg!(target_arch = "wasm32") || self.parts.is_empty() {
            return Ok(());
        }
        let parted = self.experts.iter().find(|l| l.weights(&self.graph).iter().any(|w| self.parts.has(*w)));
        parted.map_or(Ok(()), |l| Err(ExpertError::NotHere { layer: l.layer, expert: 0 }))
    }

    /// The result of a layer for pairs of loaded experts, ascending by expert: `[n_pair, n_out]`. Its input is among
    /// the values.
    pub(super) fn expert_rows(
        &mut self,
        graph: &Graph,
        layer: &ExpertLayer,
        pairs: &[Pair],
        values: &mut [Vec<f32>],
    ) -> Vec<f32> {
        for node in layer.nodes.iter().map(|i| &graph.nodes[*i]) {
            let width = graph.width(node.out) as usize;
            let made = match node.op {
                Op::MulMatId { x, weight, bias, scale, .. } => {
                    let op = ById { weight, bias, scale, width, n_expert: layer.n_expert as usize };
                    self.by_pairs(graph, &values[x.0], graph.slots(x) > 0, pairs, &op)
                }
                _ => self.node(graph, &node.op, values, &[], width, &mut |_| ()),
            };
            values[node.out.0] = made;
        }
        let out = std::mem::take(&mut values[layer.y.0]);
        for node in layer.nodes.iter().map(|i| &graph.nodes[*i]) {
            self.buffers.give(std::mem::take(&mut values[node.out.0]));
        }
        out
    }

    /// `[n_pair, width]` from `x`: `[n, k]`, or `[n_pair, k]`; expert by expert.
    fn by_pairs(&self, graph: &Graph, x: &[f32], per_pair: bool, pairs: &[Pair], op: &ById) -> Vec<f32> {
        let info = &graph.weights[op.weight.0];
        let k = info.n_col as usize;
        let mut out = self.buffers.take(pairs.len() * op.width);
        let mut at = 0;
        for group in pairs.chunk_by(|a, b| a.expert == b.expert) {
            let expert = usize::from(group[0].expert);
            let gathered: Vec<f32>;
            let columns = if per_pair {
                &x[at * k..][..group.len() * k]
            } else {
                let rows = group.iter().flat_map(|p| &x[usize::from(p.column) * k..][..k]);
                gathered = rows.copied().collect();
                &gathered
            };
            let whole = || self.matrix(op.weight, expert * info.expert_rows() as usize);
            let matrix = self.parts.matrix(info, op.weight, expert).unwrap_or_else(whole);
            let bias = op.bias.map(|b| self.expert_values(b, op.n_expert, expert));
            let scale = op.scale.map_or(1.0, |s| self.expert_values(s, op.n_expert, expert)[0]);
            let (mut columns, factor) = (Columns::new(columns, k), Factor::All(scale));
            let made = self.mul_mat(&mut columns, &matrix, op.width, &factor, bias.as_deref());
            out[at * op.width..][..made.len()].copy_from_slice(&made);
            self.buffers.give(made);
            at += group.len();
        }
        out
    }

    /// The values of a bias or scale that belong to an expert.
    fn expert_values(&self, w: WeightId, n_expert: usize, expert: usize) -> Vec<f32> {
        let info = &self.graph.weights[w.0];
        let whole = self.matrix(w, 0);
        if info.n_row == 1 && n_expert > 1 {
            return match self.parts.matrix(info, w, expert) {
                Some(part) => chaski_kernels::ops::get_rows::reference::row(info.ty, part.bytes, 1, 0),
                None => vec![whole.row(0)[expert]],
            };
        }
        let n = info.n_row as usize / n_expert;
        match self.parts.matrix(info, w, expert) {
            Some(part) => (0..n).flat_map(|r| part.row(r)).collect(),
            None => (expert * n..(expert + 1) * n).flat_map(|r| whole.row(r)).collect(),
        }
    }
}
