//! The buffers of a plan as a list: the device makes them from it, and the memory of a model is its sum.

use std::collections::HashSet;

use chaski_kernels::ops::{adjust, sample};
use chaski_kernels::{rope, step};

use super::config::PlanConfig;
use super::group::Groups;
use super::memory::{BufferSlot, BufferSpec, BufferUsage, N_CROSSING, N_READBACK};
use super::planned::{Planned, Slot};
use super::segments::Segments;
use super::stages::bound;
use crate::graph::Graph;

/// A list under construction.
#[derive(Default)]
struct List {
    buffers: Vec<BufferSpec>,
    device: usize,
    /// Slots that the device's dispatches bind, if it does not run all layers: it has no other weights, layers of the
    /// cache and tables.
    bound: Option<HashSet<Slot>>,
}

impl List {
    fn add(&mut self, what: &'static str, usage: BufferUsage, slot: BufferSlot, n_byte: u64) {
        let n_byte = n_byte.next_multiple_of(16).max(16);
        self.buffers.push(BufferSpec { device: self.device, slot, what, n_byte, usage });
    }

    fn has(&self, slot: Slot) -> bool {
        self.bound.as_ref().is_none_or(|bound| bound.contains(&slot))
    }

    fn bound(&mut self, what: &'static str, usage: BufferUsage, slot: Slot, n_byte: u64) {
        if self.has(slot) {
            self.add(what, usage, BufferSlot::Bound(slot), n_byte);
        }
    }
}

/// All buffers of a model, device by device, weights first.
pub(super) fn buffers(
    graph: &Graph,
    groups: &Groups,
    segments: &Segments,
    config: &PlanConfig,
) -> Vec<BufferSpec> {
    let (mut list, n_device) = (List::default(), segments.act_words.len());
    for device in 0..n_device {
        list.device = device;
        list.bound = (n_device > 1 || segments.cpu.is_some()).then(|| {
            // Every device has the step buffer, and the buffers that are bound but not read.
            let bound = bound(segments.of_device(device));
            bound.into_iter().chain([Slot::Step, Slot::Aux(None)]).collect()
        });
        of_device(&mut list, graph, groups, segments, config);
    }
    list.buffers
}

/// The buffers that these dispatches bind, on one device.
pub(super) fn buffers_of<'a>(
    graph: &Graph,
    groups: &Groups,
    segments: &Segments,
    config: &PlanConfig,
    dispatches: impl Iterator<Item = &'a Planned>,
) -> Vec<BufferSpec> {
    let bound = bound(dispatches).into_iter().chain([Slot::Step, Slot::Aux(None)]).collect();
    let mut list = List { bound: Some(bound), ..List::default() };
    of_device(&mut list, graph, groups, segments, config);
    list.buffers
}

/// The buffers of a device.
fn of_device(list: &mut List, graph: &Graph, groups: &Groups, segments: &Segments, config: &PlanConfig) {
    use BufferUsage::{Constant, Readback, Storage};
    let n_device = segments.act_words.len();
    for (group, g) in groups.groups.iter().enumerate() {
        for (shard, s) in g.shards.iter().enumerate() {
            list.bound("weights", Constant, Slot::Weights { group, shard }, g.layout(s).n_byte);
        }
    }
    for (i, a) in groups.aux.iter().enumerate() {
        list.bound("weights", Storage, Slot::Aux(Some(i)), 4 * a.n_word() as u64);
    }
    cache(list, graph, config);
    for (i, words) in segments.act_words[list.device].iter().enumerate() {
        list.add("activations", Storage, BufferSlot::Bound(Slot::Act(i)), 4 * words);
    }
    list.bound("activations", Storage, Slot::Aux(None), 16);
    let logits = 4 * segments.logits_words;
    list.bound("logits", Storage, Slot::Logits, logits);
    for (i, r) in graph.ropes.iter().enumerate() {
        list.bound("RoPE tables", Constant, Slot::Rope(i), 4 * rope::table_len(r, config.n_ctx) as u64);
    }
    if graph.ropes.is_empty() {
        // Kernels that support RoPE bind a table even if they do not read it.
        list.bound("RoPE tables", Constant, Slot::Rope(0), 16);
    }
    let ring = config.ring_bytes();
    for (slot, n_byte) in [
        (Slot::Step, 4 * config.step_words() as u64),
        (Slot::Ring, ring),
        (Slot::Sampler, config.per_seq(sample::N_WORD)),
        (Slot::Adjust, config.per_seq(adjust::N_WORD)),
        (Slot::Masks, 4 * segments.mask_words),
        (Slot::Arrived, 4 * segments.arrived_words),
    ] {
        list.bound("step, ring and sampler", Storage, slot, n_byte);
    }
    if segments.rows.1 > 0 {
        let n_byte = 4 * u64::from(segments.rows.1) * u64::from(config.max_col);
        list.bound("rows of embeddings", Constant, Slot::Rows, n_byte);
    }
    if n_device > 1 || segments.cpu.is_some() {
        let step = step::HEADER + step::COLUMN * config.max_col as usize;
        let n_byte = 4 * segments.crossing_words.max(step as u64);
        for i in 0..N_CROSSING {
            list.add("readback", Readback, BufferSlot::CrossingReadback(i), n_byte);
        }
    }
    if list.device + 1 == n_device {
        for i in 0..N_READBACK {
            list.add("readback", Readback, BufferSlot::RingReadback(i), ring);
        }
        list.add("readback", Readback, BufferSlot::LogitsReadback, logits);
    }
    if segments.route_words > 0 {
        list.add("readback", Readback, BufferSlot::RouteReadback, 4 * u64::from(segments.route_words));
    }
}

/// The KV cache, recurrent state and its copies.
fn cache(list: &mut List, graph: &Graph, config: &PlanConfig) {
    use BufferUsage::Storage;
    for (i, layer) in graph.kv.iter().enumerate() {
        list.bound("kv cache", Storage, Slot::Kv(i), config.kv_layout(layer).n_byte());
    }
    let has_cache = (0..graph.kv.len()).any(|i| list.has(Slot::Kv(i)));
    if let Some(n_byte) = config.page_bytes(graph).filter(|_| has_cache) {
        list.add("kv cache", Storage, BufferSlot::PageCopy, n_byte);
    }
    for (i, layer) in graph.states.iter().enumerate() {
        let n_byte = layer.n_byte() * u64::from(config.n_seq);
        list.bound("recurrent state", Storage, Slot::State(i), n_byte);
    }
    for copy in 0..config.n_snapshot(graph) as usize {
        for (layer, l) in graph.states.iter().enumerate() {
            if list.has(Slot::State(layer)) {
                list.add("snapshots", Storage, BufferSlot::StateCopy { copy, layer }, l.n_byte());
            }
        }
        for (layer, l) in graph.kv.iter().enumerate().filter(|(_, l)| config.pages_kept(l) > 0) {
            if list.has(Slot::Kv(layer)) {
                list.add("snapshots", Storage, BufferSlot::WindowCopy { copy, layer }, config.kept_bytes(l));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Memory, MemoryItem};

    #[test]
    fn memory_is_the_sum_of_the_list_by_kind() {
        let mut list = List::default();
        list.bound("weights", BufferUsage::Constant, Slot::Weights { group: 0, shard: 0 }, 100);
        list.bound("logits", BufferUsage::Storage, Slot::Logits, 0);
        list.bound("weights", BufferUsage::Storage, Slot::Aux(Some(0)), 32);
        let memory = Memory::of(&list.buffers);
        let item = |what, n_buffer, n_byte| MemoryItem { what, n_buffer, n_byte };
        assert_eq!(memory.items, [item("weights", 2, 112 + 32), item("logits", 1, 16)]);
        assert_eq!(memory.n_byte(), 160);
    }
}
