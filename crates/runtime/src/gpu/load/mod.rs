//! Loading: weights stream from a source in small chunks into their device layout.
//!
//! Natively several threads read, pack and upload ([`threads`]), if the source allows it
//! ([`Tensors::in_parallel`]). Otherwise one chunk follows the other.

#[cfg(not(target_arch = "wasm32"))]
mod pieces;
#[cfg(not(target_arch = "wasm32"))]
mod staging;
#[cfg(test)]
mod tests;
#[cfg(not(target_arch = "wasm32"))]
mod threads;

use std::collections::VecDeque;
use std::sync::Arc;

use chaski_graph::Rope;
use chaski_kernels::{DeviceLayout, rope};

use super::device::Gpu;
use crate::error::RuntimeError;
use crate::graph::{Graph, Weight, WeightId};
use crate::plan::{Aux, Group, Groups};
use crate::platform::Promise;
use crate::tensors::{Shared, Tensors, read_rows};

/// Stages of loading.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Compiling kernels.
    Compile,
    /// Reading and uploading weights.
    Upload,
}

/// Progress of loading. If both stages run concurrently, compiling is reported at its start and end, uploading in
/// between.
#[derive(Copy, Clone, Debug)]
pub struct Progress {
    /// The stage.
    pub stage: Stage,
    /// Finished units: bytes, or kernels.
    pub done: u64,
    /// Total units.
    pub total: u64,
}

/// Bytes per read.
pub(crate) const CHUNK: usize = 1 << 20;

/// Maximum number of chunks in the upload queue.
const AHEAD: usize = 4;

/// Upload queue: wgpu holds a copy of every write until the device has taken it. Reading continues meanwhile.
#[derive(Default)]
pub(crate) struct UploadQueue {
    /// Bytes written since the last submission.
    n_byte: usize,
    /// Submissions of at least a chunk each, oldest first.
    sent: VecDeque<(wgpu::SubmissionIndex, Promise<()>)>,
}

impl UploadQueue {
    /// Records a write, and waits for the oldest submission if the queue is full.
    pub(crate) async fn sent(&mut self, gpu: &Gpu, n_byte: usize) -> Result<(), RuntimeError> {
        self.n_byte += n_byte;
        if self.n_byte < CHUNK {
            return Ok(());
        }
        self.n_byte = 0;
        self.sent.push_back(gpu.mark());
        if self.sent.len() >= AHEAD
            && let Some((index, done)) = self.sent.pop_front()
        {
            gpu.reach(index, done).await?;
        }
        Ok(())
    }
}

/// A small tensor as f32.
pub(crate) async fn small(
    graph: &Graph,
    id: WeightId,
    tensors: &impl Tensors,
) -> Result<Vec<f32>, RuntimeError> {
    let w = &graph.weights[id.0];
    let mut out = all_of(w, tensors).await?;
    if let Some(times) = w.times {
        let by = all_of(&graph.weights[times.0], tensors).await?[0];
        out.iter_mut().for_each(|v| *v *= by);
    }
    Ok(out)
}

/// All values of a tensor.
async fn all_of(w: &Weight, tensors: &impl Tensors) -> Result<Vec<f32>, RuntimeError> {
    let mut bytes = vec![0; w.n_byte() as usize];
    read_rows(w, 0, &mut bytes, tensors).await?;
    floats(w, &bytes)
}

/// Progress of uploading weights.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sent {
    done: u64,
    /// Over all devices.
    total: u64,
}

impl Sent {
    /// No progress of `total` bytes.
    pub(crate) fn of(total: u64) -> Self {
        Sent { done: 0, total }
    }
}

/// Bytes to upload to these buffers of a device.
pub(crate) fn n_byte(groups: &Groups, buffers: &[Vec<Option<wgpu::Buffer>>]) -> u64 {
    let shards = groups.groups.iter().zip(buffers).filter(|(g, _)| !g.streamed).flat_map(|(g, buffers)| {
        let here = g.shards.iter().zip(buffers).filter(|(_, buffer)| buffer.is_some());
        here.map(|(shard, _)| u64::from(shard.n_row) * g.row_bytes() as u64)
    });
    shards.sum()
}

/// Fills the buffers of every group on a device.
pub(crate) async fn groups(
    gpu: &Arc<Gpu>,
    graph: &Graph,
    groups: &Groups,
    tensors: &Shared<impl Tensors + 'static>,
    buffers: &[Vec<Option<wgpu::Buffer>>],
    sent: &mut Sent,
    progress: &mut impl FnMut(Progress),
) -> Result<(), RuntimeError> {
    #[cfg(not(target_arch = "wasm32"))]
    if tensors.in_parallel() {
        tables(gpu, groups, buffers);
        let (before, total) = (sent.done, sent.total);
        let report = |done: u64| {
            sent.done = before + done;
            progress(Progress { stage: Stage::Upload, done: sent.done, total });
        };
        threads::fill(gpu, graph, groups, tensors, buffers, threads::Sizes::here(), report).await?;
        return gpu.finish().await;
    }
    one_by_one(gpu, graph, groups, tensors, buffers, sent, progress).await
}

/// Uploads the tables of the formats of offloaded experts; with other groups they come with the first rows.
#[cfg(not(target_arch = "wasm32"))]
fn tables(gpu: &Gpu, groups: &Groups, buffers: &[Vec<Option<wgpu::Buffer>>]) {
    for (g, buffers) in groups.groups.iter().zip(buffers).filter(|(g, _)| g.streamed) {
        for (shard, buffer) in g.shards.iter().zip(buffers) {
            if let Some(buffer) = buffer {
                table(gpu, g, &g.layout(shard), buffer);
            }
        }
    }
}

/// Uploads the table of a group's format.
fn table(gpu: &Gpu, g: &Group, layout: &DeviceLayout, buffer: &wgpu::Buffer) {
    layout.pack(g.format, g.n_col, 0, &[], |at, run| {
        if !run.is_empty() {
            gpu.queue.write_buffer(buffer, at, run);
        }
    });
}

/// Fills the buffers chunk by chunk.
async fn one_by_one(
    gpu: &Gpu,
    graph: &Graph,
    groups: &Groups,
    tensors: &impl Tensors,
    buffers: &[Vec<Option<wgpu::Buffer>>],
    sent: &mut Sent,
    progress: &mut impl FnMut(Progress),
) -> Result<(), RuntimeError> {
    let mut queue = UploadQueue::default();
    let mut bytes = Vec::new();
    for (g, buffers) in groups.groups.iter().zip(buffers) {
        for (shard, buffer) in g.shards.iter().zip(buffers) {
            let Some(buffer) = buffer else { continue };
            let layout = g.layout(shard);
            if g.streamed {
                // Offloaded experts are uploaded on demand; the format's table is uploaded now.
                table(gpu, g, &layout, buffer);
                continue;
            }
            let (row_bytes, per) = (g.row_bytes(), g.rows_of(CHUNK));
            let mut row = shard.row0;
            while row < shard.row0 + shard.n_row {
                let n = per.min(shard.row0 + shard.n_row - row);
                bytes.resize(n as usize * row_bytes, 0);
                rows(graph, g, row, row_bytes, &mut bytes, tensors).await?;
                layout.pack(g.format, g.n_col, u64::from(row - shard.row0), &bytes, |at, run| {
                    gpu.queue.write_buffer(buffer, at, run);
                });
                sent.done += bytes.len() as u64;
                queue.sent(gpu, bytes.len()).await?;
                progress(Progress { stage: Stage::Upload, done: sent.done, total: sent.total });
                row += n;
            }
        }
    }
    gpu.finish().await
}

/// Rows of a group, which may span several members and experts; the experts' shares are counted without padding.
pub(crate) async fn rows(
    graph: &Graph,
    group: &Group,
    first: u32,
    row_bytes: usize,
    out: &mut [u8],
    tensors: &impl Tensors,
) -> Result<(), RuntimeError> {
    let end = first + (out.len() / row_bytes) as u32;
    let share = group.share.max(1);
    for expert in first / share..end.div_ceil(share) {
        let row0 = expert * share;
        for (id, start) in &group.members {
            let w = &graph.weights[id.0];
            let begin = row0 + start;
            let (a, b) = (first.max(begin), end.min(begin + w.expert_rows()));
            if a < b {
                let part = &mut out[(a - first) as usize * row_bytes..(b - first) as usize * row_bytes];
                read_rows(w, expert * w.expert_rows() + a - begin, part, tensors).await?;
            }
        }
    }
    Ok(())
}

/// Scales and biases of the rows of one expert, in the layout of an aux buffer.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) async fn affine_of(
    graph: &Graph,
    aux: &Aux,
    expert: u32,
    tensors: &impl Tensors,
) -> Result<Vec<f32>, RuntimeError> {
    let mut out = Vec::new();
    for run in &aux.rows {
        let scale = match run.scale {
            Some(s) => small(graph, s, tensors).await?[expert as usize],
            None => 1.0,
        };
        let bias = match run.bias {
            Some(b) => row(&graph.weights[b.0], expert, tensors).await?,
            None => vec![0.0; run.n_row as usize],
        };
        out.extend(bias.into_iter().flat_map(|b| [scale * run.by, b * run.by]));
    }
    Ok(out)
}

/// A row of a tensor as f32.
#[cfg(not(target_arch = "wasm32"))]
async fn row(w: &Weight, row: u32, tensors: &impl Tensors) -> Result<Vec<f32>, RuntimeError> {
    let mut bytes = vec![0; w.row_bytes() as usize];
    read_rows(w, row, &mut bytes, tensors).await?;
    floats(w, &bytes)
}

/// Values of a tensor from its bytes.
fn floats(w: &Weight, bytes: &[u8]) -> Result<Vec<f32>, RuntimeError> {
    let n_block = bytes.len() / w.ty.block_bytes();
    let mut out = vec![0.0; n_block * w.ty.block_len()];
    let no = || RuntimeError::NoDequantizer { tensor: w.name.clone(), ty: w.ty };
    (w.ty.info().dequantize.ok_or_else(no)?)(bytes, &mut out);
    Ok(out)
}

/// The words of an aux buffer; zeros for rows of offloaded experts.
pub(crate) async fn aux(graph: &Graph, aux: &Aux, tensors: &impl Tensors) -> Result<Vec<f32>, RuntimeError> {
    let mut out = vec![0.0; aux.n_word()];
    for (w, at) in &aux.vectors {
        let values = small(graph, *w, tensors).await?;
        out[*at as usize..][..values.len()].copy_from_slice(&values);
    }
    if aux.streamed.is_some() {
        return Ok(out);
    }
    let mut at = aux.affine_at as usize;
    // Scales and biases of every run, all experts.
    let mut runs = Vec::new();
    for run in &aux.rows {
        let scale = match run.scale {
            Some(s) => small(graph, s, tensors).await?,
            None => vec![1.0; aux.n_expert as usize],
        };
        let bias = match run.bias {
            Some(b) => small(graph, b, tensors).await?,
            None => vec![0.0; (aux.n_expert * run.n_row) as usize],
        };
        runs.push((run.n_row as usize, scale, bias, run.by));
    }
    for expert in 0..aux.n_expert as usize {
        for (n_row, scale, bias, by) in &runs {
            for b in &bias[expert * n_row..(expert + 1) * n_row] {
                // ((W x) * scale + bias) * by: the tensor's scale does not apply to the bias.
                out[at..at + 2].copy_from_slice(&[scale[expert] * by, *b * by]);
                at += 2;
            }
        }
    }
    Ok(out)
}

/// Fills the aux buffers.
pub(crate) async fn aux_buffers(
    gpu: &Gpu,
    graph: &Graph,
    groups: &Groups,
    tensors: &impl Tensors,
    buffers: &[Option<wgpu::Buffer>],
) -> Result<(), RuntimeError> {
    let mut queue = UploadQueue::default();
    for (a, buffer) in groups.aux.iter().zip(buffers) {
        let Some(buffer) = buffer else { continue };
        let words = aux(graph, a, tensors).await?;
        gpu.queue.write_buffer(buffer, 0, bytemuck::cast_slice(&words));
        queue.sent(gpu, 4 * words.len()).await?;
    }
    Ok(())
}

/// Fills the RoPE tables for a context; the placeholder of a model without RoPE stays empty.
pub(crate) async fn ropes(
    gpu: &Gpu,
    ropes: &[Rope],
    n_ctx: u32,
    buffers: &[Option<wgpu::Buffer>],
) -> Result<(), RuntimeError> {
    let mut queue = UploadQueue::default();
    for (r, buffer) in ropes.iter().zip(buffers) {
        let Some(buffer) = buffer else { continue };
        let table = rope::tables(r, n_ctx);
        gpu.queue.write_buffer(buffer, 0, bytemuck::cast_slice(&table));
        queue.sent(gpu, 4 * table.len()).await?;
    }
    Ok(())
}
