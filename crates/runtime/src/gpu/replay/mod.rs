//! Experts planned for a device that only replays: a page, which has neither planner nor kernels.
//!
//! The plan is data (`plan.rs`): texts of kernels, constants, sizes of buffers, grids, and the places of weights, which
//! come packed in the device's layout. Its dispatches are those of [`ExpertWorker`](super::ExpertWorker) on a device
//! with the same capabilities.

mod maker;
mod plan;

use std::collections::HashMap;

use chaski_kernels::{Caps, DeviceLayout};

use self::maker::Maker;
pub use self::plan::{
    ReplayCall, ReplayCalls, ReplayFill, ReplayGrowth, ReplayKernel, ReplayLayer, ReplayPiece,
    ReplayPipeline, ReplayPlan, ReplayRoute, ReplayRows, ReplayShard, ReplaySteps,
};
use super::load;
use crate::error::RuntimeError;
use crate::experts::ExpertError;
use crate::graph::Graph;
use crate::plan::{BufferSlot, ExpertPlans, Groups, PlanConfig, PlanError, Slot, plan_experts};
use crate::tensors::Tensors;

/// Experts planned for a device that replays, and the packing of their weights.
pub struct ExpertReplay {
    plan: ReplayPlan,
    /// Its weights only.
    graph: Graph,
    groups: Groups,
    /// Groups by layer.
    of_layer: Vec<Vec<usize>>,
    /// Buffers by what they are bound as.
    bound: HashMap<Slot, usize>,
}

impl ExpertReplay {
    /// Plans the experts of a model for a device; [`PlanConfig::experts`] has the slots of every layer. Scales that
    /// belong to no expert are read from `tensors`.
    ///
    /// # Errors
    /// As [`plan_experts`]; [`PlanError::Replay`]; [`RuntimeError::Tensor`].
    pub async fn new(
        graph: &Graph,
        caps: &Caps,
        config: &PlanConfig,
        tensors: &impl Tensors,
    ) -> Result<ExpertReplay, RuntimeError> {
        let ExpertPlans { plans, groups, segments } = plan_experts(graph, caps, config)?;
        let mut maker = Maker::default();
        let mut readback = 0;
        for spec in &segments.buffers {
            match spec.slot {
                BufferSlot::Bound(slot) => {
                    maker.bound.insert(slot, maker.buffers.len());
                    maker.buffers.push(spec.n_byte);
                }
                BufferSlot::RouteReadback => readback = spec.n_byte,
                // Tokens and logits, which workers do not have.
                _ => {}
            }
        }
        let plans = plans
            .iter()
            .map(|plan| {
                let layers = plan.layers.iter().map(|l| maker.calls(l)).collect::<Result<_, PlanError>>()?;
                Ok((ReplaySteps { max_col: plan.max_col, many: plan.many, layers }, plan))
            })
            .collect::<Result<Vec<_>, PlanError>>()?;
        let of_layer: Vec<Vec<usize>> = plans[0].1.layers.iter().map(|l| l.groups.clone()).collect();
        let numbers: Vec<u16> = plans[0].1.layers.iter().map(|l| l.input.layer).collect();
        let n_slot = of_layer.iter().flatten().map(|g| groups.groups[*g].n_expert).min().unwrap_or(0);
        let plans: Vec<ReplaySteps> = plans.into_iter().map(|(steps, _)| steps).collect();
        maker.fill(graph, &groups, tensors).await?;
        let experts = graph.experts();
        let layers = numbers.iter().zip(&of_layer).map(|(&layer, of_layer)| ReplayLayer {
            layer,
            n_expert: experts.iter().find(|l| l.layer == layer).map_or(0, |l| l.n_expert),
            pieces: maker.pieces(&groups, of_layer),
        });
        let plan = ReplayPlan {
            width: plans[0].layers[0].slots.width,
            n_slot,
            readback,
            layers: layers.collect(),
            plans,
            buffers: maker.buffers,
            data: maker.data,
            fills: maker.fills,
            kernels: maker.kernels,
            pipelines: maker.pipelines,
        };
        let graph = Graph { weights: graph.weights.clone(), ..Graph::default() };
        Ok(ExpertReplay { plan, graph, groups, of_layer, bound: maker.bound })
    }

    /// The plan.
    pub fn plan(&self) -> &ReplayPlan {
        &self.plan
    }

    /// Bytes of a packed expert of a layer; `None` without such a layer.
    pub fn expert_bytes(&self, layer: u16) -> Option<u64> {
        let layer = self.plan.layers.iter().find(|l| l.layer == layer)?;
        Some(layer.pieces.iter().map(|p| p.n_byte).sum())
    }

    /// An expert in the layout of the device: its pieces, one after another.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`], [`ExpertError::Size`], [`RuntimeError::Tensor`].
    pub async fn pack(
        &self,
        layer: u16,
        expert: u16,
        tensors: &impl Tensors,
    ) -> Result<Vec<u8>, RuntimeError> {
        let nth = self.plan.layers.iter().position(|l| l.layer == layer);
        let nth = nth.ok_or(ExpertError::NoLayer { layer })?;
        let (found, expected) = (u64::from(expert) + 1, u64::from(self.plan.layers[nth].n_expert));
        if found > expected {
            return Err(ExpertError::Size { layer, what: "experts", found, expected }.into());
        }
        let mut bytes = Vec::new();
        for &at in &self.of_layer[nth] {
            let g = &self.groups.groups[at];
            let mut rows = vec![0; g.share as usize * g.row_bytes()];
            let first = u32::from(expert) * g.share;
            load::rows(&self.graph, g, first, g.row_bytes(), &mut rows, tensors).await?;
            let layout = DeviceLayout::new(g.format, g.share, g.n_col);
            let table = (!g.format.table().is_empty()).then_some(layout.table_start);
            layout.pack(g.format, g.n_col, 0, &rows, |at, run| {
                if Some(at) != table {
                    bytes.extend_from_slice(run);
                }
            });
        }
        for &at in &self.of_layer[nth] {
            for (i, aux) in self.groups.aux.iter().enumerate() {
                if aux.streamed == Some(at) && self.bound.contains_key(&Slot::Aux(Some(i))) {
                    let words = load::affine_of(&self.graph, aux, expert.into(), tensors).await?;
                    bytes.extend_from_slice(bytemuck::cast_slice(&words));
                }
            }
        }
        Ok(bytes)
    }
}
