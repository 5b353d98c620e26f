//! All device memory of a model, created from the plan's list before the first token.

use std::collections::HashMap;
use std::sync::Arc;

use chaski_kernels::KvLayout;

use super::device::Gpu;
use super::load::{self, Progress};
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{
    BufferSlot, BufferSpec, BufferUsage, Groups, N_CROSSING, N_READBACK, PlanConfig, Segments, Slot,
};
use crate::tensors::{Shared, Tensors};

/// A device and its part of a model.
pub(super) struct Part {
    pub(super) gpu: Arc<Gpu>,
    pub(super) buffers: Buffers,
}

/// All buffers of a model on a device. Weights, tables and layers of other devices are `None`; buffers of the head,
/// which is on the last device, are placeholders on the others, where nothing binds or writes them.
pub(super) struct Buffers {
    pub(super) groups: Vec<Vec<Option<wgpu::Buffer>>>,
    pub(super) aux: Vec<Option<wgpu::Buffer>>,
    pub(super) no_aux: wgpu::Buffer,
    pub(super) acts: Vec<wgpu::Buffer>,
    pub(super) kv: Vec<Option<(wgpu::Buffer, KvLayout)>>,
    /// Scratch for copies within the cache: one page of the largest layer.
    pub(super) page: Option<wgpu::Buffer>,
    /// Recurrent state by layer: all sequences contiguous, with the bytes of each.
    pub(super) states: Vec<Option<(wgpu::Buffer, u64)>>,
    /// Snapshots of the state outside paged tables.
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) step: wgpu::Buffer,
    /// Input rows that columns may use in place of embeddings.
    pub(super) rows: Option<wgpu::Buffer>,
    /// Counters, initially 0 like all new buffers.
    pub(super) arrived: wgpu::Buffer,
    pub(super) ring: wgpu::Buffer,
    /// RoPE tables, at least one.
    pub(super) ropes: Vec<Option<wgpu::Buffer>>,
    pub(super) sampler: wgpu::Buffer,
    pub(super) adjust: wgpu::Buffer,
    pub(super) masks: wgpu::Buffer,
    pub(super) logits: wgpu::Buffer,
    pub(super) logits_staging: wgpu::Buffer,
    pub(super) ring_staging: Vec<wgpu::Buffer>,
    /// Readback of the experts that columns use, if experts are offloaded.
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "no experts are offloaded there"))]
    pub(super) route_staging: Option<wgpu::Buffer>,
    /// Readback of values that cross to the next device, if there are several.
    pub(super) crossing_staging: Vec<wgpu::Buffer>,
}

/// A resource that the device must have, because its dispatches bind it.
fn own<T>(of: &Option<T>) -> &T {
    of.as_ref().expect("a device has what its dispatches bind")
}

impl Buffers {
    /// Frees weights and cache: nothing that binds them can run any more.
    pub(super) fn free_layers(&self) {
        let weights = self.groups.iter().flatten().flatten();
        let cache = self.kv.iter().flatten().map(|(buffer, _)| buffer);
        let states = self.states.iter().flatten().map(|(buffer, _)| buffer);
        weights.chain(cache).chain(states).chain(&self.acts).for_each(wgpu::Buffer::destroy);
    }

    /// A staging buffer for any readback.
    pub(super) fn any_staging(&self) -> &wgpu::Buffer {
        self.crossing_staging.first().unwrap_or(&self.logits_staging)
    }

    /// The buffer of a shard of weights on this device.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn weights(&self, group: usize, shard: usize) -> &wgpu::Buffer {
        own(&self.groups[group][shard])
    }

    /// The resource of a binding.
    pub(super) fn of(&self, slot: Slot) -> wgpu::BindingResource<'_> {
        let part = |layer: usize, offset, size| {
            let (buffer, size) = (&own(&self.kv[layer]).0, wgpu::BufferSize::new(size));
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size })
        };
        let buffer = match slot {
            Slot::Keys(layer) => {
                let kv = &own(&self.kv[layer]).1;
                return part(layer, 0, if kv.in_keys { kv.n_byte() } else { kv.values_at() });
            }
            Slot::Values(layer) => {
                let kv = &own(&self.kv[layer]).1;
                return part(layer, kv.values_at(), kv.n_byte() - kv.values_at());
            }
            Slot::Weights { group, shard } => own(&self.groups[group][shard]),
            Slot::Aux(None) => &self.no_aux,
            Slot::Aux(Some(i)) => own(&self.aux[i]),
            Slot::Act(i) => &self.acts[i],
            Slot::Kv(layer) => &own(&self.kv[layer]).0,
            Slot::State(layer) => &own(&self.states[layer]).0,
            Slot::Step => &self.step,
            Slot::Arrived => &self.arrived,
            Slot::Rows => own(&self.rows),
            Slot::Ring => &self.ring,
            Slot::Rope(i) => own(&self.ropes[i]),
            Slot::Sampler => &self.sampler,
            Slot::Adjust => &self.adjust,
            Slot::Masks => &self.masks,
            Slot::Logits => &self.logits,
        };
        buffer.as_entire_binding()
    }
}

/// Creates all buffers of every device, and uploads the weights.
pub(super) async fn make_buffers(
    gpus: &[Arc<Gpu>],
    graph: &Graph,
    groups: &Groups,
    segments: &Segments,
    config: &PlanConfig,
    tensors: &Shared<impl Tensors + 'static>,
    progress: &mut impl FnMut(Progress),
) -> Result<Vec<Part>, RuntimeError> {
    // Allocate all memory before anything is read.
    let mut parts = Vec::new();
    for (device, gpu) in gpus.iter().enumerate() {
        let list = segments.buffers.iter().filter(|b| b.device == device);
        let made = Made::new(gpu, graph, groups, list).await?;
        parts.push(Part { gpu: gpu.clone(), buffers: made.named(device, graph, groups, segments, config) });
    }
    let total = parts.iter().map(|p| load::n_byte(groups, &p.buffers.groups)).sum();
    let mut sent = load::Sent::of(total);
    for Part { gpu, buffers } in &parts {
        load::aux_buffers(gpu, graph, groups, tensors, &buffers.aux).await?;
        load::ropes(gpu, &graph.ropes, config.n_ctx, &buffers.ropes).await?;
        load::groups(gpu, graph, groups, tensors, &buffers.groups, &mut sent, progress).await?;
    }
    Ok(parts)
}

/// A snapshot of a sequence's state outside paged tables.
pub(super) struct Snapshot {
    /// By layer of recurrent state.
    pub(super) states: Vec<Option<wgpu::Buffer>>,
    /// By layer of the KV cache with a window.
    pub(super) windows: Vec<Option<wgpu::Buffer>>,
}

/// Created buffers of a list, not yet assigned, and the placeholder.
struct Made(HashMap<BufferSlot, wgpu::Buffer>, wgpu::Buffer);

impl Made {
    async fn new<'a>(
        gpu: &Gpu,
        graph: &Graph,
        groups: &Groups,
        list: impl Iterator<Item = &'a BufferSpec>,
    ) -> Result<Self, RuntimeError> {
        let mut made = HashMap::new();
        for spec in list {
            let buffer = gpu.buffer(&label(spec.slot, graph, groups), spec.n_byte, usage(spec.usage)).await?;
            let before = made.insert(spec.slot, buffer);
            assert!(before.is_none(), "the plan lists {:?} twice", spec.slot);
        }
        let placeholder = made.remove(&BufferSlot::Bound(Slot::Aux(None)));
        Ok(Made(made, placeholder.expect("every device has a placeholder")))
    }

    /// The buffer, or the placeholder if another device has it.
    fn or_placeholder(&mut self, slot: BufferSlot) -> wgpu::Buffer {
        self.0.remove(&slot).unwrap_or_else(|| self.1.clone())
    }

    /// The same for a buffer that dispatches bind.
    fn bound(&mut self, slot: Slot) -> wgpu::Buffer {
        self.or_placeholder(BufferSlot::Bound(slot))
    }

    /// All buffers of a kind that the device has.
    fn all(&mut self, n: usize, slot: impl Fn(usize) -> Slot) -> Vec<Option<wgpu::Buffer>> {
        (0..n).map(|i| self.0.remove(&BufferSlot::Bound(slot(i)))).collect()
    }

    fn named(
        mut self,
        device: usize,
        graph: &Graph,
        groups: &Groups,
        segments: &Segments,
        config: &PlanConfig,
    ) -> Buffers {
        let layouts = graph.kv.iter().map(|l| config.kv_layout(l));
        let kv = self.all(graph.kv.len(), Slot::Kv).into_iter().zip(layouts);
        let kv = kv.map(|(buffer, layout)| Some((buffer?, layout))).collect();
        let states = self.all(graph.states.len(), Slot::State).into_iter().zip(&graph.states);
        let states = states.map(|(buffer, layer)| Some((buffer?, layer.n_byte()))).collect();
        let (n_state, n_kv) = (graph.states.len(), graph.kv.len());
        let snapshot = |copy: usize, made: &mut Made| Snapshot {
            states: (0..n_state).map(|layer| made.0.remove(&BufferSlot::StateCopy { copy, layer })).collect(),
            windows: (0..n_kv).map(|layer| made.0.remove(&BufferSlot::WindowCopy { copy, layer })).collect(),
        };
        let shards =
            |(group, n): (usize, usize), made: &mut Made| made.all(n, |shard| Slot::Weights { group, shard });
        let n_shard = groups.groups.iter().map(|g| g.shards.len()).enumerate();
        let buffers = Buffers {
            groups: n_shard.map(|n| shards(n, &mut self)).collect(),
            aux: self.all(groups.aux.len(), |i| Slot::Aux(Some(i))),
            acts: (0..segments.act_words[device].len()).map(|i| self.bound(Slot::Act(i))).collect(),
            kv,
            page: self.0.remove(&BufferSlot::PageCopy),
            snapshots: (0..config.n_snapshot(graph) as usize).map(|copy| snapshot(copy, &mut self)).collect(),
            states,
            rows: self.0.remove(&BufferSlot::Bound(Slot::Rows)),
            step: self.bound(Slot::Step),
            arrived: self.bound(Slot::Arrived),
            ring: self.bound(Slot::Ring),
            ropes: self.all(graph.ropes.len().max(1), Slot::Rope),
            sampler: self.bound(Slot::Sampler),
            adjust: self.bound(Slot::Adjust),
            masks: self.bound(Slot::Masks),
            logits: self.bound(Slot::Logits),
            logits_staging: self.or_placeholder(BufferSlot::LogitsReadback),
            ring_staging: (0..N_READBACK).map(|i| self.or_placeholder(BufferSlot::RingReadback(i))).collect(),
            route_staging: self.0.remove(&BufferSlot::RouteReadback),
            crossing_staging: (0..N_CROSSING)
                .filter_map(|i| self.0.remove(&BufferSlot::CrossingReadback(i)))
                .collect(),
            no_aux: self.1,
        };
        assert!(self.0.is_empty(), "no field for {:?}", self.0.keys());
        buffers
    }
}

fn usage(usage: BufferUsage) -> wgpu::BufferUsages {
    use wgpu::BufferUsages as U;
    match usage {
        BufferUsage::Constant => U::STORAGE | U::COPY_DST,
        BufferUsage::Storage => U::STORAGE | U::COPY_DST | U::COPY_SRC,
        BufferUsage::Readback => U::MAP_READ | U::COPY_DST,
    }
}

/// The name of a buffer in messages of the device and its driver.
fn label(slot: BufferSlot, graph: &Graph, groups: &Groups) -> String {
    match slot {
        BufferSlot::Bound(slot) => match slot {
            Slot::Weights { group, .. } => graph.weights[groups.groups[group].members[0].0.0].name.clone(),
            Slot::Aux(Some(_)) => "norms, scales and biases".into(),
            Slot::Aux(None) => "placeholder".into(),
            Slot::Act(i) => format!("activations {i}"),
            Slot::Kv(layer) | Slot::Keys(layer) | Slot::Values(layer) => {
                format!("kv cache of layer {layer}")
            }
            Slot::State(layer) => format!("recurrent state {layer}"),
            Slot::Arrived => "counters of workgroups".into(),
            Slot::Rows => "rows of embeddings".into(),
            Slot::Step => "step".into(),
            Slot::Ring => "ring of tokens".into(),
            Slot::Rope(_) => "rope tables".into(),
            Slot::Sampler => "sampler".into(),
            Slot::Adjust => "biases and penalties".into(),
            Slot::Masks => "masks of tokens".into(),
            Slot::Logits => "logits".into(),
        },
        BufferSlot::PageCopy => "copy of a page".into(),
        BufferSlot::StateCopy { layer, .. } => format!("snapshot of the recurrent state {layer}"),
        BufferSlot::WindowCopy { layer, .. } => format!("snapshot of the window of layer {layer}"),
        BufferSlot::RingReadback(_) => "readback of tokens".into(),
        BufferSlot::LogitsReadback => "readback of logits".into(),
        BufferSlot::RouteReadback => "readback of experts".into(),
        BufferSlot::CrossingReadback(_) => "readback of values for the next device".into(),
    }
}
