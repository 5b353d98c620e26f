//! The making of a plan for replay: buffers and kernels get numbers, dispatches refer to them.

use std::collections::HashMap;

use chaski_kernels::{Access, DeviceLayout, Dialect, Kernel};

use super::super::load;
use super::{
    ReplayCall, ReplayCalls, ReplayFill, ReplayGrowth, ReplayKernel, ReplayPiece, ReplayPipeline,
    ReplayRoute, ReplayRows, ReplayShard,
};
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{ExpertLayerPlan, Group, Groups, PlanError, Planned, Slot};
use crate::tensors::Tensors;

/// The parts of a plan that are made one after another.
#[derive(Default)]
pub(super) struct Maker {
    pub(super) bound: HashMap<Slot, usize>,
    pub(super) buffers: Vec<u64>,
    pub(super) data: Vec<Vec<u8>>,
    pub(super) fills: Vec<ReplayFill>,
    pub(super) kernels: Vec<ReplayKernel>,
    pub(super) pipelines: Vec<ReplayPipeline>,
}

impl Maker {
    pub(super) fn calls(&mut self, l: &ExpertLayerPlan) -> Result<ReplayCalls, PlanError> {
        let calls = l.segment.iter().map(|p| self.call(p)).collect::<Result<_, PlanError>>()?;
        let (route, act) = l.route;
        let route = ReplayRoute {
            buffer: self.buffer(Slot::Act(act))?,
            n_used: route.n_used,
            n_expert: route.n_expert,
            tile: route.tile,
            tiles_at: route.tiles_at(),
            pairs_at: route.pairs_at(),
        };
        let input = ReplayRows {
            buffer: self.buffer(Slot::Act(l.input.act))?,
            width: l.input.width,
            words: l.input.words(),
            f16: l.input.f16,
        };
        let slots = ReplayRows {
            buffer: self.buffer(Slot::Act(l.slots.act))?,
            width: l.slots.width,
            words: l.slots.ld,
            f16: false,
        };
        Ok(ReplayCalls { calls, route, input, slots })
    }

    fn buffer(&self, slot: Slot) -> Result<usize, PlanError> {
        self.bound.get(&slot).copied().ok_or_else(|| PlanError::Replay { what: format!("{slot:?}") })
    }

    fn call(&mut self, p: &Planned) -> Result<ReplayCall, PlanError> {
        let kernel = p.dispatch.kernel;
        let cannot = |what: String| PlanError::Replay { what };
        if !kernel.is_for_web() {
            return Err(cannot(format!("kernel {}", kernel.name)));
        }
        let growth = ReplayGrowth::of(p.columns);
        let growth = growth.ok_or_else(|| cannot(format!("the grid of {}", p.part)))?;
        let of_binding = |name: &str| {
            let found = p.bind.iter().find(|(n, _)| *n == name);
            let (_, slot) = found.ok_or_else(|| cannot(format!("`{name}` of kernel {}", kernel.name)))?;
            self.buffer(*slot)
        };
        let bind = kernel.bindings.iter().map(|b| of_binding(b.name)).collect::<Result<_, _>>()?;
        let pipeline = ReplayPipeline {
            kernel: self.kernel(kernel),
            constants: p.dispatch.constants.iter().copied().collect(),
        };
        let pipeline = index_of(&mut self.pipelines, pipeline);
        Ok(ReplayCall { pipeline, bind, grid: p.dispatch.grid, growth })
    }

    fn kernel(&mut self, kernel: &'static Kernel) -> usize {
        if let Some(at) = self.kernels.iter().position(|k| k.name == kernel.name) {
            return at;
        }
        let bindings = kernel.bindings.iter().map(|b| (b.index, u8::from(b.access == Access::ReadWrite)));
        let (name, text) = (kernel.name, kernel.text(Dialect::Web));
        self.kernels.push(ReplayKernel { name, text, bindings: bindings.collect() });
        self.kernels.len() - 1
    }

    /// Tables of formats, and vectors that belong to no expert.
    pub(super) async fn fill(
        &mut self,
        graph: &Graph,
        groups: &Groups,
        tensors: &impl Tensors,
    ) -> Result<(), RuntimeError> {
        for (group, g) in groups.groups.iter().enumerate() {
            for (shard, s) in g.shards.iter().enumerate() {
                let table = bytemuck::cast_slice(g.format.table());
                if let Some(&buffer) = self.bound.get(&Slot::Weights { group, shard })
                    && !table.is_empty()
                {
                    self.put(buffer, g.layout(s).table_start, table);
                }
            }
        }
        for (i, aux) in groups.aux.iter().enumerate() {
            if let Some(&buffer) = self.bound.get(&Slot::Aux(Some(i))) {
                let words = load::aux(graph, aux, tensors).await?;
                if words.iter().any(|w| w.to_bits() != 0) {
                    self.put(buffer, 0, bytemuck::cast_slice(&words));
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, buffer: usize, at: u64, bytes: &[u8]) {
        let data = index_of(&mut self.data, bytes.to_vec());
        self.fills.push(ReplayFill { buffer, at, data });
    }

    /// The pieces of an expert of a layer, in the order of [`ExpertReplay::pack`].
    pub(super) fn pieces(&self, groups: &Groups, of_layer: &[usize]) -> Vec<ReplayPiece> {
        let mut pieces = Vec::new();
        for &group in of_layer {
            let g = &groups.groups[group];
            for plane in 0..g.format.planes.len() {
                pieces.push(self.plane(group, g, plane));
            }
        }
        for group in of_layer {
            for (i, aux) in groups.aux.iter().enumerate().filter(|(_, aux)| aux.streamed == Some(*group)) {
                if let Some(&buffer) = self.bound.get(&Slot::Aux(Some(i))) {
                    let n_byte = 8 * aux.rows.iter().map(|r| u64::from(r.n_row)).sum::<u64>();
                    let start = 4 * u64::from(aux.affine_at);
                    let shards = vec![ReplayShard { buffer, start, n_slot: aux.n_expert }];
                    pieces.push(ReplayPiece { n_byte, stride: n_byte, shards });
                }
            }
        }
        pieces
    }

    fn plane(&self, group: usize, g: &Group, plane: usize) -> ReplayPiece {
        let per_row = u64::from(DeviceLayout::new(g.format, 0, g.n_col).blocks_per_row)
            * g.format.planes[plane].n_byte as u64;
        let shards = g.shards.iter().enumerate().filter_map(|(shard, s)| {
            let buffer = *self.bound.get(&Slot::Weights { group, shard })?;
            let start = g.layout(s).plane_start[plane];
            Some(ReplayShard { buffer, start, n_slot: s.n_row / g.stride })
        });
        ReplayPiece {
            n_byte: (u64::from(g.share) * per_row).next_multiple_of(4),
            stride: u64::from(g.stride) * per_row,
            shards: shards.collect(),
        }
    }
}

/// The index of a value in a list, to which it is added if it is not there.
fn index_of<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    list.iter().position(|v| *v == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}
