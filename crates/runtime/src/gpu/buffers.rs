//! All memory of a model on the device: made before the first token, listed to the byte.

use chaski_kernels::KvLayout;
use chaski_kernels::ops::{adjust, sample};

use super::choose::STAGING;
use super::device::Gpu;
use super::load::{self, Progress, Tensors};
use crate::STATE_COPIES;
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{Groups, PlanConfig, Segments, Slot};

/// One buffer or kind of buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryItem {
    /// What it holds.
    pub what: &'static str,
    /// Buffers.
    pub n_buffer: usize,
    /// Bytes.
    pub n_byte: u64,
}

/// Device memory of a model, to the byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All kinds of buffers.
    pub items: Vec<MemoryItem>,
}

impl Memory {
    /// Bytes in all.
    pub fn n_byte(&self) -> u64 {
        self.items.iter().map(|i| i.n_byte).sum()
    }
}

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
    /// Copies of the states of a sequence, [`STATE_COPIES`] for each.
    pub(super) kept: Vec<Vec<wgpu::Buffer>>,
    pub(super) step: wgpu::Buffer,
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
    use wgpu::BufferUsages as U;
    let storage = U::STORAGE | U::COPY_DST | U::COPY_SRC;
    let staging = U::MAP_READ | U::COPY_DST;
    // What can run out of memory is made first, before anything is read.
    let mut kv = Vec::new();
    for (i, layer) in graph.kv.iter().enumerate() {
        let layout = config.kv_layout(layer);
        kv.push((gpu.buffer(&format!("kv cache of layer {i}"), layout.n_byte(), storage).await?, layout));
    }
    let page = match config.page_bytes(graph) {
        Some(n_byte) => Some(gpu.buffer("page on its way", n_byte, storage).await?),
        None => None,
    };
    let mut states = Vec::new();
    for (i, layer) in graph.states.iter().enumerate() {
        let n_byte = layer.n_byte() * u64::from(config.n_seq);
        states.push((gpu.buffer(&format!("recurrent state {i}"), n_byte, storage).await?, layer.n_byte()));
    }
    let mut kept = Vec::new();
    if !states.is_empty() {
        for _ in 0..STATE_COPIES * config.n_seq as usize {
            let mut copy = Vec::new();
            for (i, layer) in graph.states.iter().enumerate() {
                let what = format!("copy of the recurrent state {i}");
                copy.push(gpu.buffer(&what, layer.n_byte(), storage).await?);
            }
            kept.push(copy);
        }
    }
    let mut acts = Vec::new();
    for (i, words) in segments.act_words.iter().enumerate() {
        acts.push(gpu.buffer(&format!("activations {i}"), words * 4, storage).await?);
    }
    let mut aux = Vec::new();
    let mut flight = load::Flight::default();
    for a in &groups.aux {
        let words = load::aux(graph, a, tensors).await?;
        let buffer = gpu.buffer("norms, scales and biases", words.len() as u64 * 4, storage).await?;
        gpu.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&words));
        flight.sent(gpu, 4 * words.len()).await?;
        aux.push(buffer);
    }
    let ring_bytes = config.ring_bytes();
    let mut ring_staging = Vec::new();
    for _ in 0..STAGING {
        ring_staging.push(gpu.buffer("readback of tokens", ring_bytes, staging).await?);
    }
    let route_staging = match segments.route_words {
        0 => None,
        n => Some(gpu.buffer("readback of experts", u64::from(n) * 4, staging).await?),
    };
    let logits = segments.logits_words * 4;
    Ok(Buffers {
        kv,
        page,
        states,
        kept,
        acts,
        aux,
        no_aux: gpu.buffer("placeholder", 16, storage).await?,
        step: gpu.buffer("step", config.step_words() as u64 * 4, storage).await?,
        // New buffers are all 0.
        arrived: gpu.buffer("counters of workgroups", segments.arrived_words * 4, storage).await?,
        ring: gpu.buffer("ring of tokens", ring_bytes, storage).await?,
        ropes: load::ropes(gpu, &graph.ropes, config.n_ctx).await?,
        sampler: gpu.buffer("sampler", config.per_seq(sample::N_WORD), storage).await?,
        adjust: gpu.buffer("biases and penalties", config.per_seq(adjust::N_WORD), storage).await?,
        logits: gpu.buffer("logits", logits, storage).await?,
        logits_staging: gpu.buffer("readback of logits", logits, staging).await?,
        ring_staging,
        route_staging,
        groups: load::groups(gpu, graph, groups, tensors, progress).await?,
    })
}

/// What the buffers take.
pub(super) fn memory_of(b: &Buffers) -> Memory {
    let item = |what, buffers: &mut dyn Iterator<Item = &wgpu::Buffer>| {
        let (n_buffer, n_byte) = buffers.fold((0, 0), |(n, s), b| (n + 1, s + b.size()));
        MemoryItem { what, n_buffer, n_byte }
    };
    let items = vec![
        item("weights", &mut b.groups.iter().flatten().chain(&b.aux)),
        item("kv cache", &mut b.kv.iter().map(|b| &b.0).chain(&b.page)),
        item("recurrent state", &mut b.states.iter().map(|b| &b.0)),
        item("copies of the recurrent state", &mut b.kept.iter().flatten()),
        item("activations", &mut b.acts.iter().chain([&b.no_aux])),
        item("logits", &mut [&b.logits].into_iter()),
        item("rotation tables", &mut b.ropes.iter()),
        item(
            "step, ring and sampler",
            &mut [&b.step, &b.ring, &b.sampler, &b.adjust, &b.arrived].into_iter(),
        ),
        item("readback", &mut b.ring_staging.iter().chain([&b.logits_staging]).chain(&b.route_staging)),
    ];
    // Models without a cache, or without recurrent state.
    Memory { items: items.into_iter().filter(|i| i.n_buffer > 0).collect() }
}
