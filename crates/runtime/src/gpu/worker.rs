//! Experts of other machines' models on a device.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use chaski_kernels::Route;
use half::slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _};

use super::buffers::{Buffers, Part, make_buffers};
use super::device::Gpu;
use super::ready::{Ablation, ReadySegment, Recorder, make_ready};
use super::store::ExpertStore;
use crate::error::RuntimeError;
use crate::experts::{CANARIES, ExpertCall, ExpertError, Pair, digest};
use crate::graph::{ExpertLayer, Graph};
use crate::plan::{
    Columns, ExpertInput, ExpertLayerPlan, ExpertPlans, ExpertSlots, Memory, PlanConfig, plan_experts,
};
use crate::tensors::Tensors;

/// The dispatches of a layer.
struct ReadyLayer {
    segment: ReadySegment,
    route: (Route, usize),
    input: ExpertInput,
    slots: ExpertSlots,
}

/// All layers, for up to a number of columns.
struct ReadyPlan {
    max_col: u32,
    many: bool,
    layers: Vec<ReadyLayer>,
}

/// Some experts of a model on a device, which computes calls with the bits that the model itself would on such a
/// device.
pub struct ExpertWorker {
    gpu: Arc<Gpu>,
    graph: Graph,
    layers: Vec<ExpertLayer>,
    buffers: Buffers,
    plans: Vec<ReadyPlan>,
    store: ExpertStore,
    /// The groups of each layer's weights.
    groups: Vec<Vec<usize>>,
    /// Loaded experts: layer, and expert.
    held: BTreeSet<(u16, u16)>,
    memory: Memory,
}

/// Tensors that nobody asks for: what is loaded with the buffers are tables of formats.
struct NoTensors;

impl Tensors for NoTensors {
    async fn read(&self, name: &str, _: u64, _: &mut [u8]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Err(format!("`{name}` belongs to no expert").into())
    }
}

impl ExpertWorker {
    /// A worker for the experts of a model, without any: each layer has room for as many as
    /// [`PlanConfig::experts`] has slots. Bits are those of a model with the same configuration on such a device; its
    /// context and cache do not matter.
    ///
    /// # Errors
    /// [`PlanError`](crate::plan::PlanError) if the graph has no experts that can be computed by themselves, or they do
    /// not fit the device; device errors.
    pub async fn new(gpu: Arc<Gpu>, graph: &Graph, config: &PlanConfig) -> Result<Self, RuntimeError> {
        let ExpertPlans { plans, groups, segments } = plan_experts(graph, gpu.caps(), config)?;
        let gpus = [gpu.clone()];
        let parts =
            make_buffers(&gpus, graph, &groups, &segments, config, &Arc::new(NoTensors), &mut |_| ()).await?;
        let Some(Part { buffers, .. }) = parts.into_iter().next() else {
            unreachable!("one device has one part")
        };
        let recorder = Recorder { gpu: &gpu, buffers: &buffers, ablation: Ablation::default(), lane: None };
        let layer = |l: &ExpertLayerPlan| -> Result<ReadyLayer, RuntimeError> {
            let segment = l.segment.iter().map(|p| make_ready(recorder, 0, p)).collect::<Result<_, _>>()?;
            let ExpertLayerPlan { route, input, slots, .. } = *l;
            Ok(ReadyLayer { segment, route, input, slots })
        };
        let mut ready = Vec::new();
        for plan in &plans {
            let layers = plan.layers.iter().map(layer).collect::<Result<_, _>>()?;
            ready.push(ReadyPlan { max_col: plan.max_col, many: plan.many, layers });
        }
        gpu.check()?;
        let planned: BTreeSet<u16> = plans[0].layers.iter().map(|l| l.input.layer).collect();
        let layers = graph.experts().into_iter().filter(|l| planned.contains(&l.layer)).collect();
        Ok(ExpertWorker {
            graph: graph.clone(),
            layers,
            plans: ready,
            groups: plans[0].layers.iter().map(|l| l.groups.clone()).collect(),
            store: ExpertStore::new(graph, groups),
            held: BTreeSet::new(),
            memory: Memory::of(&segments.buffers),
            buffers,
            gpu,
        })
    }

    /// The layers of experts that can be computed by themselves.
    pub fn layers(&self) -> &[ExpertLayer] {
        &self.layers
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Device memory, which does not depend on the loaded experts.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Experts of a layer that can be loaded at once.
    pub fn n_slot(&self) -> u32 {
        self.groups.iter().flatten().map(|g| self.store.n_slot(*g)).min().unwrap_or(0)
    }

    /// True if an expert is loaded.
    pub fn has(&self, layer: u16, expert: u16) -> bool {
        self.held.contains(&(layer, expert))
    }

    /// Index of a layer; its number and that of its experts.
    fn nth(&self, layer: u16, expert: u16) -> Result<usize, ExpertError> {
        let nth = self.layers.iter().position(|l| l.layer == layer).ok_or(ExpertError::NoLayer { layer })?;
        let (found, expected) = (u64::from(expert) + 1, u64::from(self.layers[nth].n_expert));
        match found <= expected {
            true => Ok(nth),
            false => Err(ExpertError::Size { layer, what: "experts", found, expected }),
        }
    }

    /// Loads an expert, unless it is loaded.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`]; [`ExpertError::Size`] for an unknown expert, or without a free slot;
    /// [`RuntimeError::Tensor`]; device errors.
    pub async fn add(&mut self, layer: u16, expert: u16, tensors: &impl Tensors) -> Result<(), RuntimeError> {
        let nth = self.nth(layer, expert)?;
        if self.has(layer, expert) {
            return Ok(());
        }
        let found = self.held.range((layer, 0)..=(layer, u16::MAX)).count() as u64 + 1;
        let expected = self.n_slot().into();
        if found > expected {
            let what = "experts on the device";
            return Err(ExpertError::Size { layer, what, found, expected }.into());
        }
        let recorder =
            Recorder { gpu: &self.gpu, buffers: &self.buffers, ablation: Ablation::default(), lane: None };
        let groups = &self.groups[nth];
        let mut added = Ok(0);
        for group in groups {
            added = self.store.bring(recorder, *group, &[expert.into()], tensors).await;
            if added.is_err() {
                break;
            }
        }
        let place = |group: &usize| self.store.place(*group, expert.into());
        // Experts come and go in all groups of a layer at once.
        let is_alike = groups.iter().all(|g| place(g) == place(&groups[0]));
        if added.is_err() || !is_alike {
            groups.iter().for_each(|group| self.store.release(*group, expert.into()));
        }
        added?;
        assert!(is_alike, "an expert has the same slot in each of its groups");
        self.held.insert((layer, expert));
        self.gpu.check()
    }

    /// Frees the slot of an expert; false if it was not loaded.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`], [`ExpertError::Size`].
    pub fn remove(&mut self, layer: u16, expert: u16) -> Result<bool, ExpertError> {
        let nth = self.nth(layer, expert)?;
        let was_there = self.held.remove(&(layer, expert));
        if was_there {
            self.groups[nth].iter().for_each(|group| self.store.release(*group, expert.into()));
        }
        Ok(was_there)
    }

    /// Maximum number of columns of the steps of whose plans it has one.
    pub fn max_columns(&self) -> u32 {
        self.plans.last().map_or(0, |p| p.max_col)
    }

    /// Computes a call: `[n_pair, width]`.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`]; [`ExpertError::NotHere`]; [`ExpertError::Size`] or [`ExpertError::Order`] for a call
    /// that is not one of the layer, or of a step with more columns than there is a plan for; device errors.
    pub async fn compute(&mut self, call: &ExpertCall) -> Result<Vec<f32>, RuntimeError> {
        let layer = call.layer;
        let nth = self.nth(layer, 0)?;
        call.check(&self.graph, &self.layers[nth])?;
        if let Some(p) = call.pairs.iter().find(|p| !self.has(layer, p.expert)) {
            return Err(ExpertError::NotHere { layer, expert: p.expert }.into());
        }
        if call.pairs.is_empty() {
            return Ok(Vec::new());
        }
        let (found, expected) = (u64::from(call.step_columns), u64::from(self.max_columns()));
        let Some(plan) = self.plans.iter().find(|p| call.step_columns <= p.max_col) else {
            let what = "columns of the step";
            return Err(ExpertError::Size { layer, what, found, expected }.into());
        };
        let l = &plan.layers[nth];
        let (group, slots) = (self.groups[nth][0], &l.slots);
        let place = |expert: u16| {
            self.store.place(group, expert.into()).expect("an expert that is loaded has a slot")
        };
        let n_col = (call.x.len() / l.input.width.max(1) as usize) as u32;
        let write = |act: usize, first: u32, words: &[u32]| {
            let buffer = &self.buffers.acts[act];
            self.gpu.queue.write_buffer(buffer, 4 * u64::from(first), bytemuck::cast_slice(words));
        };
        write(l.input.act, 0, &input_words(&l.input, &call.x));
        let (route, act) = l.route;
        // The rows of the pairs, and the number of rows up to the last.
        let (rows, n_row): (Vec<usize>, u32) = match plan.many {
            false => {
                write(act, 0, &route_of_one(&route, &call.pairs, place));
                (call.pairs.iter().map(|p| usize::from(p.slot)).collect(), route.n_used)
            }
            true => {
                let (tiles, pairs) = route_of_many(&route, n_col, &call.pairs, place);
                write(act, route.tiles_at(), &tiles);
                write(act, route.pairs_at(), &pairs);
                ((0..call.pairs.len()).collect(), call.pairs.len() as u32)
            }
        };
        let recorder =
            Recorder { gpu: &self.gpu, buffers: &self.buffers, ablation: Ablation::default(), lane: None };
        let staging = self.buffers.route_staging.as_ref().expect("slots are read back");
        let n_byte = 4 * u64::from(n_row) * u64::from(slots.ld);
        let index = recorder.send(&l.segment, Columns::from(n_col), |encoder| {
            encoder.copy_buffer_to_buffer(&self.buffers.acts[slots.act], 0, staging, 0, n_byte);
        });
        self.gpu.check()?;
        let bytes = self.gpu.read(staging, n_byte, Some(index)).await?;
        let values: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes);
        if plan.many && slots.ld == slots.width {
            return Ok(values);
        }
        let row = |row: &usize| &values[row * slots.ld as usize..][..slots.width as usize];
        Ok(rows.iter().map(row).collect::<Vec<_>>().concat())
    }

    /// The sha256 of an expert's rows for fixed inputs ([`ExpertCall::canary`]), of steps by every plan up to a hundred
    /// columns: workers with equal digests compute equal bits.
    ///
    /// # Errors
    /// As [`Self::compute`].
    pub async fn canary(&mut self, layer: u16, expert: u16) -> Result<[u8; 32], RuntimeError> {
        let l = self.layers[self.nth(layer, expert)?].clone();
        let most = self.max_columns();
        let mut rows = Vec::new();
        for n_col in CANARIES.into_iter().filter(|n| u32::from(*n) <= most) {
            let call = ExpertCall::canary(&self.graph, &l, expert, n_col);
            rows.push(self.compute(&call).await?);
        }
        Ok(digest(rows.iter().map(Vec::as_slice)))
    }
}

/// The words of columns in the input's layout.
fn input_words(input: &ExpertInput, x: &[f32]) -> Vec<u32> {
    let (width, n_word) = (input.width as usize, input.words() as usize);
    let mut words = vec![0; x.len() / width.max(1) * n_word];
    let mut halves = vec![0u16; width];
    for (to, x) in words.chunks_exact_mut(n_word).zip(x.chunks_exact(width)) {
        if !input.f16 {
            to.iter_mut().zip(x).for_each(|(to, v)| *to = v.to_bits());
            continue;
        }
        // The model has rounded them already.
        halves.reinterpret_cast_mut::<half::f16>().convert_from_f32_slice(x);
        for (to, two) in to.iter_mut().zip(halves.chunks(2)) {
            *to = u32::from(two[0]) | u32::from(two.get(1).copied().unwrap_or(0)) << 16;
        }
    }
    words
}

/// The experts of one column's slots; slots without a pair have none.
fn route_of_one(route: &Route, pairs: &[Pair], place: impl Fn(u16) -> u32) -> Vec<u32> {
    let mut words = vec![u32::MAX; route.n_used as usize];
    pairs.iter().for_each(|p| words[usize::from(p.slot)] = place(p.expert));
    words
}

/// The tiles and the sorted pairs of several columns.
fn route_of_many(
    route: &Route,
    n_col: u32,
    pairs: &[Pair],
    place: impl Fn(u16) -> u32,
) -> (Vec<u32>, Vec<u32>) {
    let (mut tiles, mut at) = (Vec::new(), 0);
    for of_expert in pairs.chunk_by(|a, b| a.expert == b.expert) {
        let end = at + of_expert.len() as u32;
        for first in (at..end).step_by(route.tile as usize) {
            tiles.extend([place(of_expert[0].expert), first, end.min(first + route.tile)]);
        }
        at = end;
    }
    // The remaining tiles of the dispatch are empty.
    let n_tile = route.tiles_of(n_col * route.n_used);
    tiles.resize((Route::TILE_WORDS * n_tile) as usize, 0);
    let index = |p: &Pair| u32::from(p.column) * route.n_used + u32::from(p.slot);
    (tiles, pairs.iter().map(index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(expert: u16, column: u16, slot: u16) -> Pair {
        Pair { expert, column, slot }
    }

    #[test]
    fn routes_name_slots_on_the_device() {
        let route = Route { n_expert: 8, n_used: 3, n_col: 1, tile: 32 };
        let place = |expert: u16| u32::from(expert) + 10;
        assert_eq!(route_of_one(&route, &[pair(2, 0, 2), pair(5, 0, 0)], place), [15, u32::MAX, 12]);
        // Two tiles of the first expert.
        let route = Route { n_expert: 8, n_used: 2, n_col: 4, tile: 2 };
        let pairs = [pair(1, 0, 1), pair(1, 1, 0), pair(1, 3, 0), pair(6, 1, 1)];
        let (tiles, order) = route_of_many(&route, 4, &pairs, place);
        assert_eq!(tiles[..9], [11, 0, 2, 11, 2, 3, 16, 3, 4]);
        assert_eq!(tiles.len() as u32, 3 * route.tiles_of(8));
        assert!(tiles[9..].iter().all(|w| *w == 0));
        assert_eq!(order, [1, 2, 6, 3]);
    }

    #[test]
    fn inputs_have_the_layout_of_the_device() {
        let input = ExpertInput { layer: 0, act: 0, width: 3, ld: 8, f16: false, n_out: 3 };
        let x = [1.0, -2.0, 0.5, 4.0, 5.0, 6.0];
        let plain = input_words(&input, &x);
        assert_eq!((plain.len(), f32::from_bits(plain[1]), f32::from_bits(plain[8])), (16, -2.0, 4.0));
        let halves = input_words(&ExpertInput { f16: true, ..input }, &x);
        let half = |word: u32, i: u32| half::f16::from_bits((word >> (16 * i)) as u16).to_f32();
        assert_eq!((halves.len(), half(halves[0], 1), half(halves[1], 0)), (8, -2.0, 0.5));
        assert_eq!((half(halves[1], 1), half(halves[4], 0)), (0.0, 4.0));
    }
}
