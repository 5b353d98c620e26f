//! Experts planned for a device that only replays: a page, which has neither planner nor kernels.
//!
//! The plan is data: texts of kernels, constants, sizes of buffers, grids, and the places of weights, which come packed
//! in the device's layout. Its dispatches are those of [`ExpertWorker`](super::ExpertWorker) on a device with the same
//! capabilities.

use std::collections::{BTreeMap, HashMap};

use chaski_kernels::{Access, Caps, DeviceLayout, Dialect, Kernel, Route};
use serde::{Serialize, Serializer};

use super::load;
use crate::error::RuntimeError;
use crate::experts::ExpertError;
use crate::graph::Graph;
use crate::plan::{
    BufferSlot, ExpertLayerPlan, ExpertPlans, Group, Groups, Growth, PlanConfig, PlanError, Planned, Slot,
    plan_experts,
};
use crate::tensors::Tensors;

/// A kernel of a [`ReplayPlan`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayKernel {
    /// Its name.
    pub name: &'static str,
    /// WGSL for a browser; the entry point is `main`.
    pub text: String,
    /// Storage buffers of group 0: number of the binding, and 1 if the kernel writes to it.
    pub bindings: Vec<(u32, u8)>,
}

/// A kernel with its constants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayPipeline {
    /// Index of the kernel.
    pub kernel: usize,
    /// Values of `override` constants.
    pub constants: BTreeMap<&'static str, f64>,
}

/// How a grid grows with the number of columns `n`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum ReplayGrowth {
    /// It does not.
    Fixed,
    /// `ceil(n / tile) * times` along an axis.
    Tiles {
        /// Axis, 0 to 2.
        axis: u8,
        /// Columns of a tile.
        tile: u32,
        /// Workgroups of a tile.
        times: u32,
    },
    /// `floor(p / tile) + min(n_expert, p)` along x, where `p = n * n_used`.
    Experts {
        /// Columns of a tile.
        tile: u32,
        /// Experts of a column.
        n_used: u32,
        /// Most experts.
        n_expert: u32,
    },
    /// `ceil(g * n / whole)`, where g is the whole length of y, or of x if that is 1.
    Share {
        /// Columns of the whole grid.
        whole: u32,
    },
}

impl ReplayGrowth {
    /// `None` for grids that depend on positions, of which experts have none.
    fn of(growth: Growth) -> Option<ReplayGrowth> {
        let tiles = |axis, tile, times| Some(ReplayGrowth::Tiles { axis, tile, times });
        match growth {
            Growth::Fixed => Some(ReplayGrowth::Fixed),
            Growth::X => tiles(0, 1, 1),
            Growth::Y => tiles(1, 1, 1),
            Growth::Z => tiles(2, 1, 1),
            Growth::XTiles(tile) => tiles(0, tile, 1),
            Growth::YTiles(tile) => tiles(1, tile, 1),
            Growth::YTimes(times) => tiles(1, 1, times),
            Growth::XSlots(Route { tile, n_used, .. }) => tiles(0, tile, n_used),
            Growth::XExperts(Route { tile, n_used, n_expert, .. }) => {
                Some(ReplayGrowth::Experts { tile, n_used, n_expert })
            }
            Growth::Share(whole) => Some(ReplayGrowth::Share { whole: whole.max(1) }),
            Growth::Each(_) | Growth::YEach | Growth::YRest(_) => None,
        }
    }
}

/// A dispatch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayCall {
    /// Index of the pipeline.
    pub pipeline: usize,
    /// Indices of buffers, in the order of the kernel's bindings.
    pub bind: Vec<usize>,
    /// Workgroups along x, y and z, before they grow.
    pub grid: [u32; 3],
    /// How they grow.
    pub growth: ReplayGrowth,
}

/// Layout of a route ([`Route`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayRoute {
    /// Index of the buffer.
    pub buffer: usize,
    /// Experts of a column.
    pub n_used: u32,
    /// Most experts.
    pub n_expert: u32,
    /// Pairs of one expert in a tile.
    pub tile: u32,
    /// First word of the tiles, of three words each: slot, first pair, end of the pairs.
    pub tiles_at: u32,
    /// First word of the pairs, sorted by expert: `column * n_used + slot`.
    pub pairs_at: u32,
}

/// Columns before or rows after the dispatches of a layer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayRows {
    /// Index of the buffer.
    pub buffer: usize,
    /// Values of a column or row.
    pub width: u32,
    /// Words from one to the next.
    pub words: u32,
    /// Values are f16, two in a word.
    pub f16: bool,
}

/// The dispatches of a layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayCalls {
    /// The dispatches, in order.
    pub calls: Vec<ReplayCall>,
    /// The route.
    pub route: ReplayRoute,
    /// The columns.
    pub input: ReplayRows,
    /// The rows: of one column in the order of slots, of several in that of the sorted pairs.
    pub slots: ReplayRows,
}

/// All layers, for up to a number of columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplaySteps {
    /// Most columns.
    pub max_col: u32,
    /// Columns are sorted by expert.
    pub many: bool,
    /// The layers, in the order of [`ReplayPlan::layers`].
    pub layers: Vec<ReplayCalls>,
}

/// A buffer with room for a piece of some experts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayShard {
    /// Index of the buffer.
    pub buffer: usize,
    /// Byte of the first slot.
    pub start: u64,
    /// Number of slots.
    pub n_slot: u32,
}

/// A contiguous piece of an expert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayPiece {
    /// Its bytes, a multiple of 4.
    pub n_byte: u64,
    /// Bytes from one slot to the next.
    pub stride: u64,
    /// Buffers of the slots, in order.
    pub shards: Vec<ReplayShard>,
}

/// A layer of experts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayLayer {
    /// Its number.
    pub layer: u16,
    /// Its experts.
    pub n_expert: u32,
    /// The pieces of a packed expert, one after another.
    pub pieces: Vec<ReplayPiece>,
}

/// Initial bytes of a buffer; the rest is zero.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayFill {
    /// Index of the buffer.
    pub buffer: usize,
    /// First byte.
    pub at: u64,
    /// Index in [`ReplayPlan::data`].
    pub data: usize,
}

/// The experts of a model as data for a device that replays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayPlan {
    /// Values of a row.
    pub width: u32,
    /// Experts of a layer that the device has room for.
    pub n_slot: u32,
    /// Bytes of each buffer; all are storage.
    pub buffers: Vec<u64>,
    /// Bytes of the buffer for readbacks.
    pub readback: u64,
    /// Bytes, as hexadecimal digits.
    #[serde(serialize_with = "hex")]
    pub data: Vec<Vec<u8>>,
    /// Initial contents.
    pub fills: Vec<ReplayFill>,
    /// The layers.
    pub layers: Vec<ReplayLayer>,
    /// Kernels.
    pub kernels: Vec<ReplayKernel>,
    /// Pipelines.
    pub pipelines: Vec<ReplayPipeline>,
    /// Dispatches for one and for several columns, ascending.
    pub plans: Vec<ReplaySteps>,
}

fn hex<S: Serializer>(data: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
    let digits = |bytes: &Vec<u8>| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    serializer.collect_seq(data.iter().map(digits))
}

impl ReplayPlan {
    /// Bytes of all buffers.
    pub fn n_byte(&self) -> u64 {
        self.buffers.iter().sum::<u64>() + self.readback
    }

    /// Most buffers of a dispatch.
    pub fn max_bindings(&self) -> usize {
        self.kernels.iter().map(|k| k.bindings.len()).max().unwrap_or(0)
    }
}

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

/// The parts of a plan that are made one after another.
#[derive(Default)]
struct Maker {
    bound: HashMap<Slot, usize>,
    buffers: Vec<u64>,
    data: Vec<Vec<u8>>,
    fills: Vec<ReplayFill>,
    kernels: Vec<ReplayKernel>,
    pipelines: Vec<ReplayPipeline>,
}

impl Maker {
    fn calls(&mut self, l: &ExpertLayerPlan) -> Result<ReplayCalls, PlanError> {
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
    async fn fill(
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
    fn pieces(&self, groups: &Groups, of_layer: &[usize]) -> Vec<ReplayPiece> {
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
