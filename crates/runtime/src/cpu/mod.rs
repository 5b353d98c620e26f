//! The CPU executor: interprets the graph through the operations' references. In this form it is slow and simple, the
//! oracle of tests; with CPU-specific products and attention ([`CpuModel::set_inputs_in_16_bits`]), it is the backend
//! without a GPU.
//!
//! All rows of a step, of any sequence, go through each node together, so weights are read once for all of them.

mod attention;
#[cfg_attr(target_arch = "wasm32", path = "no_away.rs")]
mod away;
mod bidirectional;
mod cache;
mod experts;
mod factor;
#[cfg(not(target_arch = "wasm32"))]
mod first;
mod latent;
mod matrix;
mod nodes;
mod parallel;
mod products;
mod recurrent;
mod steps;
#[cfg_attr(target_arch = "wasm32", path = "no_tiles.rs")]
mod tiles;
mod weights;
mod worker;

use std::ops::Range;
use std::sync::Arc;

use ggml_format::GgmlType;

use crate::STATE_COPIES;
use crate::error::RuntimeError;
use crate::formats;
use crate::graph::{ExpertLayer, Graph, Op, ValueId, Weight, WeightId};
use crate::tensors::Tensors;
use crate::workers::Workers;
use cache::Sequences;
use matrix::Parts;
use parallel::Buffers;
use tiles::{Tiles, Uses};
use weights::Bytes;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use first::FirstLayers;
pub use worker::{ExpertWorker, WorkerConfig};

/// Sizes of a model on the CPU.
#[derive(Copy, Clone, Debug)]
pub struct CpuConfig {
    /// Maximum number of tokens per sequence.
    pub n_ctx: u32,
    /// Sequences.
    pub n_seq: u32,
    /// Tokens per page of the KV cache.
    pub page: u32,
    /// Pages shared by all sequences; `None`: one context per sequence.
    pub pool: Option<u32>,
    /// Types of the keys and of the values in the KV cache.
    pub kv: (GgmlType, GgmlType),
    /// Worker threads.
    pub threads: Threads,
    /// Use tensors of files that are in memory, or can be mapped into it, without reading them: processes share them,
    /// and the operating system loads them when they are used. The files must not change meanwhile.
    pub map: bool,
    /// Copy matrices into the order of products while they load: answers come up to twice as fast, for memory that the
    /// process does not share. Products round activations to 16 bits then ([`CpuModel::set_inputs_in_16_bits`]).
    /// Nothing is copied in browsers.
    pub repack: bool,
}

/// Numbers of worker threads; results do not depend on them. No effect in browsers, where pages start them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// For steps of one column; 0: one for each core.
    pub decode: u32,
    /// For steps of several columns, such as prompts; 0: as for one.
    pub batch: u32,
}

impl CpuConfig {
    /// Pages per sequence.
    pub fn pages_per_seq(&self) -> u32 {
        self.n_ctx.div_ceil(self.page)
    }

    /// Pages of the pool.
    pub fn n_page(&self) -> u32 {
        self.pool.unwrap_or(self.pages_per_seq() * self.n_seq)
    }

    /// Bytes of a page of the pool in all layers.
    pub fn page_bytes(&self, graph: &Graph) -> u64 {
        let one = CpuConfig { pool: Some(1), ..*self };
        graph.kv.iter().map(|l| cache::layer_bytes(&one, l)).fold(0, u64::saturating_add)
    }

    /// Capacity of the pool in tokens.
    fn n_token(&self) -> u64 {
        u64::from(self.n_page()) * u64::from(self.page)
    }

    /// Capacity for copies of recurrent state; 0 for models without one.
    pub fn n_snapshot(&self, graph: &Graph) -> u32 {
        if graph.states.is_empty() { 0 } else { STATE_COPIES as u32 * self.n_seq }
    }

    /// Bytes of weights and cache, as [`CpuModel::n_byte`], before loading.
    pub fn n_byte(&self, graph: &Graph) -> u64 {
        self.n_byte_without(graph, &[])
    }

    /// The same without the experts of some layers ([`CpuModel::load_without`]).
    pub fn n_byte_without(&self, graph: &Graph, layers: &[u16]) -> u64 {
        let parts = Parts::of(graph, experts::layers_of(graph).iter().filter(|l| layers.contains(&l.layer)));
        let kv = graph.kv.iter().map(|l| cache::layer_bytes(self, l)).fold(0, u64::saturating_add);
        let state: u64 = graph.states.iter().map(|l| 4 * u64::from(l.n)).sum();
        let is_whole = |id: &WeightId| !parts.has(*id);
        let whole = graph.weights.iter().enumerate().filter(|(i, _)| is_whole(&WeightId(*i)));
        let weights: u64 = whole.map(|(_, w)| w.n_byte()).sum();
        let more = if self.repack { Tiles::n_byte_of(graph, self.map, is_whole) } else { 0 };
        let weights = weights.saturating_add_signed(more);
        let states = state * u64::from(self.n_seq + self.n_snapshot(graph));
        weights.saturating_add(kv).saturating_add(states)
    }
}

/// A loaded model.
pub struct CpuModel {
    graph: Arc<Graph>,
    config: CpuConfig,
    is_encoder: bool,
    /// Last node that reads each value.
    last_use: Vec<usize>,
    /// The logits and the element-wise operations before them, back to the product.
    tail: Vec<ValueId>,
    /// Products round activations to 16 bits, and attention runs in f32.
    in_16_bits: bool,
    weights: Vec<Bytes>,
    tiles: Tiles,
    /// Layers of experts, and the weights of those that are loaded expert by expert.
    experts: Arc<[ExpertLayer]>,
    parts: Parts,
    seqs: Sequences,
    /// LoRA scales of each sequence.
    loras: Vec<Vec<f32>>,
    /// Input rows that columns may use in place of embeddings.
    inputs: Vec<f32>,
    /// Masks of the columns of the next step that choose under one.
    masks: Vec<u32>,
    buffers: Buffers,
    /// Rows of the current step, or of the last.
    n_row: usize,
    workers: Workers,
    /// For steps of several columns, if others.
    batch_workers: Option<Workers>,
}

/// Minimum number of multiplications per task, so that scheduling is cheap in comparison.
const SHARE: usize = 1 << 16;

/// The input of a product, for observers.
#[derive(Copy, Clone, Debug)]
pub struct ProductInput<'a> {
    /// The matrix, or a part of one.
    pub weight: &'a Weight,
    /// Index of the matrix within its tensor, if the tensor holds several.
    pub matrix: u32,
    /// `[n, n_col]`
    pub x: &'a [f32],
}

/// Receives the inputs of every product before it is computed, on any thread.
pub type Watch<'a> = &'a mut (dyn FnMut(ProductInput<'_>) + Send);

/// A token of a step.
#[derive(Copy, Clone, Debug)]
struct Row {
    seq: u32,
    token: u32,
    pos: u32,
    /// Input row in place of the token's embedding.
    input: Option<u32>,
    /// Components of the position.
    components: [u32; 3],
}

/// The rows of each sequence, which are contiguous.
fn runs(rows: &[Row]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    rows.chunk_by(|a, b| a.seq == b.seq).map(move |run| {
        at += run.len();
        at - run.len()..at
    })
}

/// The logits and the element-wise operations before them, back to the product, including LoRA products.
fn tail(graph: &Graph) -> Vec<ValueId> {
    let mut out: Vec<ValueId> = graph.logits.into_iter().collect();
    for node in graph.nodes.iter().rev() {
        if out.contains(&node.out) {
            match node.op {
                Op::Scale { x, .. } | Op::Unary { x, .. } => out.push(x),
                Op::Add { a, b } => out.extend([a, b]),
                _ => {}
            }
        }
    }
    out
}

impl CpuModel {
    /// Reads all tensors into memory, or maps them.
    ///
    /// # Errors
    /// [`RuntimeError::Tensor`]; [`RuntimeError::Format`] for a type that is not a weight format;
    /// [`RuntimeError::Threads`].
    pub async fn load(
        graph: Graph,
        config: CpuConfig,
        tensors: &impl Tensors,
        progress: impl FnMut(u64, u64),
    ) -> Result<Self, RuntimeError> {
        Self::load_without(graph, config, &[], tensors, progress).await
    }

    /// The same without the experts of some layers ([`ExpertLayer::layer`]), which [`Self::run_step_away`] computes
    /// elsewhere, or with those that are added ([`Self::add_expert`]).
    ///
    /// # Errors
    /// As [`Self::load`]; [`NoLayer`](crate::ExpertError::NoLayer).
    pub async fn load_without(
        graph: Graph,
        config: CpuConfig,
        layers: &[u16],
        tensors: &impl Tensors,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Self, RuntimeError> {
        formats::check(&graph)?;
        let experts = experts::layers_of(&graph);
        let parts = experts::parts_of(&graph, &experts, layers)?;
        let mut model = CpuModel::without_weights(graph, config, experts, parts)?;
        let graph = model.graph.clone();
        let whole = graph.weights.iter().enumerate().filter(|(i, _)| !model.parts.has(WeightId(*i)));
        let total = whole.map(|(_, w)| w.n_byte()).sum();
        let mut done = 0;
        let uses = if config.repack { Uses::of(&graph) } else { Uses::default() };
        for (i, w) in graph.weights.iter().enumerate() {
            if model.parts.has(WeightId(i)) {
                continue;
            }
            let bytes = Bytes::load(w, config.map, tensors).await?;
            let workers = model.batch_workers.as_ref().unwrap_or(&model.workers);
            model.weights[i] = model.tiles.pack(&uses, (WeightId(i), w), bytes, workers);
            done += w.n_byte();
            progress(done, total);
        }
        Ok(model)
    }

    /// A model that has nothing but experts, which are added; it runs no steps.
    fn of_experts(graph: Graph, config: CpuConfig) -> Result<Self, RuntimeError> {
        formats::check(&graph)?;
        let experts = experts::layers_of(&graph);
        let parts = Parts::of(&graph, experts.iter());
        CpuModel::without_weights(graph, config, experts, parts)
    }

    fn without_weights(
        graph: Graph,
        config: CpuConfig,
        experts: Arc<[ExpertLayer]>,
        parts: Parts,
    ) -> Result<Self, RuntimeError> {
        let Threads { decode, batch } = config.threads;
        let workers = Workers::new(decode)?;
        let batch_workers = (batch != 0 && batch != decode).then(|| Workers::new(batch)).transpose()?;
        let seqs = Sequences::new(&graph, &config)?;
        let weights = graph.weights.iter().map(|_| Bytes::Read(Vec::new())).collect();
        let loras = vec![vec![0.0; graph.n_lora()]; config.n_seq as usize];
        let (last_use, tail, graph) = (graph.last_use(), tail(&graph), Arc::new(graph));
        let (inputs, masks) = (Vec::new(), Vec::new());
        Ok(CpuModel {
            is_encoder: graph.is_encoder(),
            graph,
            config,
            last_use,
            tail,
            in_16_bits: config.repack,
            weights,
            tiles: Tiles::default(),
            experts,
            parts,
            seqs,
            loras,
            inputs,
            masks,
            buffers: Buffers::default(),
            n_row: 0,
            workers,
            batch_workers,
        })
    }

    /// Its sizes.
    pub fn config(&self) -> &CpuConfig {
        &self.config
    }

    /// Number of threads that compute a step of `n_col` columns.
    pub fn n_thread(&self, n_col: usize) -> usize {
        self.workers(n_col).n()
    }

    /// Threads of the current step.
    fn team(&self) -> &Workers {
        self.workers(self.n_row)
    }

    fn workers(&self, n_col: usize) -> &Workers {
        self.batch_workers.as_ref().filter(|_| n_col > 1).unwrap_or(&self.workers)
    }

    /// Enables the fast path: products with formats that have codes ([`ggml_format::Codes`]) round activations to 16
    /// bits with a scale per 32 values; other products and attention run in f32. It is several times as fast as the
    /// references, and as accurate as kernels on a device. Default: [`CpuConfig::repack`]; off, everything runs through
    /// the references, with sums in f64.
    ///
    /// # Panics
    /// If it is turned off with [`CpuConfig::repack`]: the references read the bytes of the file.
    pub fn set_inputs_in_16_bits(&mut self, on: bool) {
        assert!(on || !self.config.repack, "the references read matrices that were not repacked");
        self.in_16_bits = on;
    }

    /// Bytes of weights and cache.
    pub fn n_byte(&self) -> u64 {
        // Tiles stand for mapped bytes, which the system may drop.
        let counts = |i: usize, w: &Bytes| !(matches!(w, Bytes::Mapped(..)) && self.tiles.has(WeightId(i)));
        let weights = self.weights.iter().enumerate().filter(|(i, w)| counts(*i, w));
        let whole = weights.map(|(_, w)| w.len() as u64).sum::<u64>() + self.tiles.n_byte();
        whole + self.parts.n_byte() + self.seqs.n_byte()
    }

    /// Sets entries of a sequence's page table, from `first`.
    pub fn set_pages(&mut self, seq: u32, first: u32, pages: &[u32]) {
        self.seqs.set_pages(seq, first, pages);
    }

    /// Copies a page in every layer.
    pub fn copy_page(&mut self, from: u32, to: u32) {
        self.seqs.copy_page(from, to);
    }

    /// True if the model has recurrent state.
    pub fn has_state(&self) -> bool {
        !self.graph.states.is_empty()
    }

    /// True if a step takes whole texts only.
    pub fn is_encoder(&self) -> bool {
        self.is_encoder
    }

    /// Capacity for copies of recurrent state.
    pub fn n_snapshot(&self) -> u32 {
        self.config.n_snapshot(&self.graph)
    }

    /// Tokens that the recurrent state of a sequence has processed; `None` if unknown.
    pub fn state_at(&self, seq: u32) -> Option<u32> {
        self.seqs.state_at[seq as usize]
    }

    /// Copies the recurrent state of a sequence to a snapshot.
    pub fn keep_snapshot(&mut self, seq: u32, snapshot: u32) {
        self.seqs.keep_snapshot(seq, snapshot);
    }

    /// Restores a snapshot, taken after `at` tokens, to a sequence.
    pub fn restore_snapshot(&mut self, seq: u32, snapshot: u32, at: u32) {
        self.seqs.restore_snapshot(seq, snapshot, at);
    }

    /// Layout of a session's bytes: models with equal layouts can exchange sessions.
    pub fn session_layout(&self) -> String {
        let layers = self.seqs.kv.iter().flatten().map(|c| format!("{} {}", c.ty, c.cell_bytes()));
        let states = self.graph.states.iter().map(|s| format!("s{}", s.n));
        format!("CPU {}", layers.chain(states).collect::<Vec<_>>().join(" "))
    }

    /// Bytes of a session of `n` tokens.
    pub fn session_bytes(&self, n: u32) -> u64 {
        self.seqs.session_bytes(n)
    }

    /// The first `n` tokens of a sequence, stored in these pages, and its state.
    pub fn save(&self, seq: u32, pages: &[u32], n: u32) -> Vec<u8> {
        self.seqs.save(seq, pages, n)
    }

    /// Restores a session of [`Self::session_bytes`] to these pages: the sequence has then processed `n` tokens.
    pub fn put_back(&mut self, seq: u32, pages: &[u32], n: u32, bytes: &[u8]) {
        self.seqs.put_back(seq, pages, n, bytes);
    }

    fn row(&self, w: WeightId, row: usize) -> Vec<f32> {
        let info = &self.graph.weights[w.0];
        chaski_kernels::ops::get_rows::reference::row(info.ty, &self.weights[w.0], info.n_col as usize, row)
    }

    fn vector(&self, w: WeightId) -> Vec<f32> {
        let info = &self.graph.weights[w.0];
        let by = info.times.map_or(1.0, |t| self.vector(t)[0]);
        (0..info.n_row as usize).flat_map(|r| self.row(w, r)).map(|v| v * by).collect()
    }
}
