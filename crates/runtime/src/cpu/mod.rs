//! The CPU executor: interprets the graph through the operations' references. Slow and obvious, the oracle; and with
//! products and attention in a processor's own way ([`CpuModel::set_inputs_in_16_bits`]), the backend where there is no GPU.
//!
//! The rows of a step, of whichever sequences, go through every node together, so weights are read once for all of them.

mod attention;
mod cache;
mod latent;
mod nodes;
mod products;
mod recurrent;
mod steps;

use std::ops::Range;
use std::sync::Arc;

use ggml_format::GgmlType;

use crate::STATE_COPIES;
use crate::error::RuntimeError;
use crate::formats;
use crate::graph::{Graph, Op, ValueId, Weight, WeightId};
use crate::tensors::{Tensors, read_rows};
use cache::Sequences;

/// Sizes of a model on the CPU.
#[derive(Copy, Clone, Debug)]
pub struct CpuConfig {
    /// Tokens of a sequence at most.
    pub n_ctx: u32,
    /// Sequences.
    pub n_seq: u32,
    /// Tokens of a page of the KV cache.
    pub page: u32,
    /// Pages that the sequences share; `None`: a context for each.
    pub pool: Option<u32>,
    /// Types of the keys and of the values in the KV cache.
    pub kv: (GgmlType, GgmlType),
}

impl CpuConfig {
    /// Pages of one sequence.
    pub fn pages_per_seq(&self) -> u32 {
        self.n_ctx.div_ceil(self.page)
    }

    /// Pages of the pool.
    pub fn n_page(&self) -> u32 {
        self.pool.unwrap_or(self.pages_per_seq() * self.n_seq)
    }

    /// Tokens that the pool has room for.
    fn n_token(&self) -> u64 {
        u64::from(self.n_page()) * u64::from(self.page)
    }

    /// Copies of recurrent state that there is room for; 0 for models without one.
    pub fn n_snapshot(&self, graph: &Graph) -> u32 {
        if graph.states.is_empty() { 0 } else { STATE_COPIES as u32 * self.n_seq }
    }

    /// Bytes of weights and cache: [`CpuModel::n_byte`], before anything is loaded.
    pub fn n_byte(&self, graph: &Graph) -> u64 {
        let kv = graph.kv.iter().map(|l| cache::layer_bytes(self, l)).fold(0, u64::saturating_add);
        let state: u64 = graph.states.iter().map(|l| 4 * u64::from(l.n)).sum();
        let weights: u64 = graph.weights.iter().map(Weight::n_byte).sum();
        let states = state * u64::from(self.n_seq + self.n_snapshot(graph));
        weights.saturating_add(kv).saturating_add(states)
    }
}

/// A loaded model.
pub struct CpuModel {
    graph: Arc<Graph>,
    config: CpuConfig,
    /// For every value the last node that reads it.
    last_use: Vec<usize>,
    /// The logits and what is made of them value by value, back to the product.
    tail: Vec<ValueId>,
    /// Whether products round their inputs to 16 bits, and attention is done in f32.
    in_16_bits: bool,
    /// Every tensor in the file's format.
    weights: Vec<Vec<u8>>,
    seqs: Sequences,
    /// Rows of values that columns may have in place of embeddings.
    inputs: Vec<f32>,
    /// Masks of the columns of the next step that choose under one.
    masks: Vec<u32>,
}

/// Products of two numbers that a thread does at least, so that handing them out does not take longer.
const SHARE: usize = 1 << 16;

/// The input of a product, for those who watch.
#[derive(Copy, Clone, Debug)]
pub struct ProductInput<'a> {
    /// The matrix, or the part of one.
    pub weight: &'a Weight,
    /// Which of the tensor's matrices it is, where the tensor holds several.
    pub matrix: u32,
    /// `[n, n_col]`
    pub x: &'a [f32],
}

/// Gets the inputs of every product before it is calculated, on whichever thread.
pub type Watch<'a> = &'a mut (dyn FnMut(ProductInput<'_>) + Send);

/// A token of a step.
#[derive(Copy, Clone, Debug)]
struct Row {
    seq: u32,
    token: u32,
    pos: u32,
    /// The row of values that it has in place of the token's embedding.
    input: Option<u32>,
    /// The components of its position.
    components: [u32; 3],
}

/// The rows of each sequence, which stand together.
fn runs(rows: &[Row]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    rows.chunk_by(|a, b| a.seq == b.seq).map(move |run| {
        at += run.len();
        at - run.len()..at
    })
}

/// The logits and what they are made of value by value, back to the product, and to those that LoRAs add to it.
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
    /// Reads all tensors into memory.
    ///
    /// # Errors
    /// [`RuntimeError::Tensor`], or [`RuntimeError::Format`] for a type that is no weight format.
    pub async fn load(
        graph: Graph,
        config: CpuConfig,
        tensors: &impl Tensors,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Self, RuntimeError> {
        formats::check(&graph)?;
        let total = graph.weights.iter().map(Weight::n_byte).sum();
        let (mut weights, mut done) = (Vec::new(), 0);
        for w in &graph.weights {
            let mut bytes = vec![0; w.n_byte() as usize];
            read_rows(w, 0, &mut bytes, tensors).await?;
            done += bytes.len() as u64;
            progress(done, total);
            weights.push(bytes);
        }
        let seqs = Sequences::new(&graph, &config)?;
        let (last_use, tail, graph) = (graph.last_use(), tail(&graph), Arc::new(graph));
        let (inputs, masks) = (Vec::new(), Vec::new());
        Ok(CpuModel { graph, config, last_use, tail, in_16_bits: false, weights, seqs, inputs, masks })
    }

    /// Its sizes.
    pub fn config(&self) -> &CpuConfig {
        &self.config
    }

    /// Products with formats that have codes ([`ggml_format::Codes`]) round their inputs to 16 bits, each 32 with a scale,
    /// other products and attention are done in f32: several times as fast as the references, and as exact as kernels on a
    /// device. Off at first: then everything is done by the references, with sums in f64.
    pub fn set_inputs_in_16_bits(&mut self, on: bool) {
        self.in_16_bits = on;
    }

    /// Sets the scales of LoRAs, [`AdapterScale::of`](crate::graph::AdapterScale::of) says which.
    ///
    /// # Panics
    /// If there are fewer than the graph names.
    pub fn set_adapter_scales(&mut self, scales: &[f32]) {
        for s in &self.graph.scales {
            let value = s.by * scales[s.of];
            self.weights[s.weight.0]
                .chunks_exact_mut(4)
                .for_each(|v| v.copy_from_slice(&value.to_le_bytes()));
        }
    }

    /// Bytes of weights and cache.
    pub fn n_byte(&self) -> u64 {
        self.weights.iter().map(|w| w.len() as u64).sum::<u64>() + self.seqs.n_byte()
    }

    /// Gives a sequence pages from its `first` on.
    pub fn set_pages(&mut self, seq: u32, first: u32, pages: &[u32]) {
        self.seqs.set_pages(seq, first, pages);
    }

    /// Copies a page in every layer.
    pub fn copy_page(&mut self, from: u32, to: u32) {
        self.seqs.copy_page(from, to);
    }

    /// Whether the model has recurrent state.
    pub fn has_state(&self) -> bool {
        !self.graph.states.is_empty()
    }

    /// Copies of recurrent state that there is room for.
    pub fn n_snapshot(&self) -> u32 {
        self.config.n_snapshot(&self.graph)
    }

    /// Tokens that the recurrent state of a sequence has seen; `None` if that is not known.
    pub fn state_at(&self, seq: u32) -> Option<u32> {
        self.seqs.state_at[seq as usize]
    }

    /// Copies the recurrent state of a sequence to a snapshot.
    pub fn keep_snapshot(&mut self, seq: u32, snapshot: u32) {
        self.seqs.keep_snapshot(seq, snapshot);
    }

    /// Copies a snapshot, which was made after `at` tokens, back into a sequence.
    pub fn restore_snapshot(&mut self, seq: u32, snapshot: u32, at: u32) {
        self.seqs.restore_snapshot(seq, snapshot, at);
    }

    /// The meaning of the bytes of a session: they fit models of which this says the same.
    pub fn session_layout(&self) -> String {
        let layers = self.seqs.kv.iter().flatten().map(|c| format!("{} {}", c.ty, c.cell_bytes()));
        let states = self.graph.states.iter().map(|s| format!("s{}", s.n));
        format!("processor {}", layers.chain(states).collect::<Vec<_>>().join(" "))
    }

    /// Bytes of a session of `n` tokens.
    pub fn session_bytes(&self, n: u32) -> u64 {
        self.seqs.session_bytes(n)
    }

    /// The first `n` tokens of a sequence, which are in these pages, and its state.
    pub fn save(&self, seq: u32, pages: &[u32], n: u32) -> Vec<u8> {
        self.seqs.save(seq, pages, n)
    }

    /// Puts a session of [`Self::session_bytes`] into these pages: the sequence has seen `n` tokens then.
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
