//! All memory of a model on the device, made from the plan's list before the first token.

use std::collections::HashMap;

use chaski_kernels::KvLayout;

use super::device::Gpu;
use super::load::{self, Progress};
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{BufferSlot, BufferSpec, BufferUsage, Groups, N_READBACK, PlanConfig, Segments, Slot};
use crate::tensors::Tensors;

/// Every buffer of a model.
pub(super) struct Buffers {
    pub(super) groups: Vec<Vec<wgpu::Buffer>>,
    pub(super) aux: Vec<wgpu::Buffer>,
    pub(super) no_aux: wgpu::Buffer,
    pub(super) acts: Vec<wgpu::Buffer>,
    pub(super) kv: Vec<(wgpu::Buffer, KvLayout)>,
    /// What is copied from a place of the cache to another goes through it: a page of the largest layer.
    pub(super) page: Option<wgpu::Buffer>,
    /// Layers of recurrent state: those of all sequences one after the other, each of so many bytes.
    pub(super) states: Vec<(wgpu::Buffer, u64)>,
    /// Snapshots of what sequences have beside the pages of their tables.
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) step: wgpu::Buffer,
    /// Counters, all 0 as buffers are when they are new.
    pub(super) arrived: wgpu::Buffer,
    pub(super) ring: wgpu::Buffer,
    /// A table for each rotation, one at least.
    pub(super) ropes: Vec<wgpu::Buffer>,
    pub(super) sampler: wgpu::Buffer,
    pub(super) adjust: wgpu::Buffer,
    pub(super) logits: wgpu::Buffer,
    pub(super) logits_staging: wgpu::Buffer,
    pub(super) ring_staging: Vec<wgpu::Buffer>,
    /// Where experts stay with the processor, it reads here which of them are wanted.
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "no experts are offloaded there"))]
    pub(super) route_staging: Option<wgpu::Buffer>,
}

impl Buffers {
    /// What a binding is bound to.
    pub(super) fn of(&self, slot: Slot) -> wgpu::BindingResource<'_> {
        let part = |layer: usize, offset, size| {
            let (buffer, size) = (&self.kv[layer].0, wgpu::BufferSize::new(size));
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size })
        };
        let buffer = match slot {
            Slot::Keys(layer) => {
                let kv = &self.kv[layer].1;
                return part(layer, 0, if kv.in_keys { kv.n_byte() } else { kv.values_at() });
            }
            Slot::Values(layer) => {
                let kv = &self.kv[layer].1;
                return part(layer, kv.values_at(), kv.n_byte() - kv.values_at());
            }
            Slot::Weights { group, shard } => &self.groups[group][shard],
            Slot::Aux(None) => &self.no_aux,
            Slot::Aux(Some(i)) => &self.aux[i],
            Slot::Act(i) => &self.acts[i],
            Slot::Kv(layer) => &self.kv[layer].0,
            Slot::State(layer) => &self.states[layer].0,
            Slot::Step => &self.step,
            Slot::Arrived => &self.arrived,
            Slot::Ring => &self.ring,
            Slot::Rope(i) => &self.ropes[i],
            Slot::Sampler => &self.sampler,
            Slot::Adjust => &self.adjust,
            Slot::Logits => &self.logits,
        };
        buffer.as_entire_binding()
    }
}

/// Makes all buffers and sends the weights.
pub(super) async fn make_buffers(
    gpu: &Gpu,
    graph: &Graph,
    groups: &Groups,
    segments: &Segments,
    config: &PlanConfig,
    tensors: &impl Tensors,
    progress: &mut impl FnMut(Progress),
) -> Result<Buffers, RuntimeError> {
    // All memory is there before anything is read.
    let made = Made::new(gpu, graph, groups, &segments.buffers).await?;
    let buffers = made.named(graph, groups, segments, config);
    load::aux_buffers(gpu, graph, groups, tensors, &buffers.aux).await?;
    load::ropes(gpu, &graph.ropes, config.n_ctx, &buffers.ropes).await?;
    load::groups(gpu, graph, groups, tensors, &buffers.groups, progress).await?;
    Ok(buffers)
}

/// A place for what a sequence has beside the pages of its table.
pub(super) struct Snapshot {
    /// By layer of recurrent state.
    pub(super) states: Vec<wgpu::Buffer>,
    /// By layer of the KV cache, where it has a window.
    pub(super) windows: Vec<Option<wgpu::Buffer>>,
}

/// Buffers of a list that have not been given their place.
struct Made(HashMap<BufferSlot, wgpu::Buffer>);

impl Made {
    async fn new(
        gpu: &Gpu,
        graph: &Graph,
        groups: &Groups,
        list: &[BufferSpec],
    ) -> Result<Self, RuntimeError> {
        let mut made = HashMap::with_capacity(list.len());
        for spec in list {
            let buffer = gpu.buffer(&label(spec.slot, graph, groups), spec.n_byte, usage(spec.usage)).await?;
            let before = made.insert(spec.slot, buffer);
            assert!(before.is_none(), "the plan lists {:?} twice", spec.slot);
        }
        Ok(Made(made))
    }

    fn take(&mut self, slot: BufferSlot) -> wgpu::Buffer {
        self.0.remove(&slot).unwrap_or_else(|| panic!("the plan lists every buffer, but not {slot:?}"))
    }

    fn bound(&mut self, slot: Slot) -> wgpu::Buffer {
        self.take(BufferSlot::Bound(slot))
    }

    fn all(&mut self, n: usize, slot: impl Fn(usize) -> Slot) -> Vec<wgpu::Buffer> {
        (0..n).map(|i| self.bound(slot(i))).collect()
    }

    fn named(mut self, graph: &Graph, groups: &Groups, segments: &Segments, config: &PlanConfig) -> Buffers {
        let layouts = graph.kv.iter().map(|l| config.kv_layout(l));
        let kv = self.all(graph.kv.len(), Slot::Kv).into_iter().zip(layouts).collect();
        let states = self.all(graph.states.len(), Slot::State);
        let (n_state, n_kv) = (graph.states.len(), graph.kv.len());
        let snapshot = |copy: usize, made: &mut Made| Snapshot {
            states: (0..n_state).map(|layer| made.take(BufferSlot::StateCopy { copy, layer })).collect(),
            windows: (0..n_kv).map(|layer| made.0.remove(&BufferSlot::WindowCopy { copy, layer })).collect(),
        };
        let shards =
            |(group, n): (usize, usize), made: &mut Made| made.all(n, |shard| Slot::Weights { group, shard });
        let n_shard = groups.groups.iter().map(|g| g.shards.len()).enumerate();
        let buffers = Buffers {
            groups: n_shard.map(|n| shards(n, &mut self)).collect(),
            aux: self.all(groups.aux.len(), |i| Slot::Aux(Some(i))),
            no_aux: self.bound(Slot::Aux(None)),
            acts: self.all(segments.act_words.len(), Slot::Act),
            kv,
            page: self.0.remove(&BufferSlot::PageCopy),
            snapshots: (0..config.n_snapshot(graph) as usize).map(|copy| snapshot(copy, &mut self)).collect(),
            states: states.into_iter().zip(graph.states.iter().map(|l| l.n_byte())).collect(),
            step: self.bound(Slot::Step),
            arrived: self.bound(Slot::Arrived),
            ring: self.bound(Slot::Ring),
            ropes: self.all(graph.ropes.len().max(1), Slot::Rope),
            sampler: self.bound(Slot::Sampler),
            adjust: self.bound(Slot::Adjust),
            logits: self.bound(Slot::Logits),
            logits_staging: self.take(BufferSlot::LogitsReadback),
            ring_staging: (0..N_READBACK).map(|i| self.take(BufferSlot::RingReadback(i))).collect(),
            route_staging: self.0.remove(&BufferSlot::RouteReadback),
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

/// The name of a buffer in messages of the device and of its driver.
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
            Slot::Step => "step".into(),
            Slot::Ring => "ring of tokens".into(),
            Slot::Rope(_) => "rope tables".into(),
            Slot::Sampler => "sampler".into(),
            Slot::Adjust => "biases and penalties".into(),
            Slot::Logits => "logits".into(),
        },
        BufferSlot::PageCopy => "copy of a page".into(),
        BufferSlot::StateCopy { layer, .. } => format!("snapshot of the recurrent state {layer}"),
        BufferSlot::WindowCopy { layer, .. } => format!("snapshot of the window of layer {layer}"),
        BufferSlot::RingReadback(_) => "readback of tokens".into(),
        BufferSlot::LogitsReadback => "readback of logits".into(),
        BufferSlot::RouteReadback => "readback of experts".into(),
    }
}
