//! The CPU executor: interprets the graph through the operations' references. Slow and obvious, the oracle; and with
//! products and attention in a processor's own way ([`CpuModel::set_inputs_in_16_bits`]), what runs where there is no GPU.

mod attention;
mod latent;
mod recurrent;

use std::borrow::Cow;
use std::sync::Arc;

use chaski_graph::Score;
use chaski_kernels::ops::attention::reference::Query;
use chaski_kernels::ops::{altup, cutoff, glu, moe_reduce, mul_mat_vec, norm, rms_norm, topk_moe, unary};
use ggml_format::GgmlType;
use ggml_format::product::{Columns, values};

use crate::STATE_COPIES;
use crate::error::RuntimeError;
use crate::formats;
use crate::gpu::{Tensors, read_rows};
use crate::graph::{Graph, KvLayer, Op, Product, RowNorm, ValueId, Weight, WeightId};
use crate::platform;

/// A loaded model.
pub struct CpuModel {
    graph: Arc<Graph>,
    /// For every value the last node that reads it.
    last_use: Vec<usize>,
    /// Whether products round their inputs to 16 bits, and attention is done in f32.
    in_16_bits: bool,
    /// Every tensor in the file's format.
    weights: Vec<Vec<u8>>,
    /// The sequences, and which of them runs.
    seqs: Vec<Sequence>,
    at: usize,
    n_ctx: u32,
}

/// Products of two numbers that a thread does at least, so that handing them out does not take longer.
const SHARE: usize = 1 << 16;

/// What is kept of a sequence.
#[derive(Clone)]
struct Sequence {
    /// Keys and values of every layer: `[n_ctx, n_kv, d]`.
    kv: Vec<[Cache; 2]>,
    /// Layers of recurrent state, and copies of all.
    state: Vec<Vec<f32>>,
    kept: Vec<Vec<Vec<f32>>>,
    /// Tokens that the recurrent state has seen.
    state_at: u32,
}

/// What a matrix of the graph is multiplied with, for those who watch.
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

/// Keys or values of a layer: a row of every head's cells for each token, in the cache's type.
#[derive(Clone)]
struct Cache {
    ty: GgmlType,
    /// Channels of a cell, and of what is stored: whole blocks.
    d: usize,
    stored: usize,
    bytes: Vec<u8>,
}

impl Cache {
    /// # Errors
    /// [`RuntimeError::OutOfMemory`].
    fn new(ty: GgmlType, n_cell: u64, d: u32) -> Result<Self, RuntimeError> {
        let d = d as usize;
        let stored = d.next_multiple_of(ty.block_len());
        let n_byte = Cache::n_byte(ty, n_cell, d);
        let out = || RuntimeError::OutOfMemory { what: "kv cache".into(), n_byte };
        let n = usize::try_from(n_byte).map_err(|_| out())?;
        // Zeros that nobody has written take no memory, but a vector of them cannot fail: this can.
        Vec::<u8>::new().try_reserve_exact(n).map_err(|_| out())?;
        Ok(Cache { ty, d, stored, bytes: vec![0; n] })
    }

    fn n_byte(ty: GgmlType, n_cell: u64, d: usize) -> u64 {
        n_cell.saturating_mul((d.div_ceil(ty.block_len()) * ty.block_bytes()) as u64)
    }

    fn cell_bytes(&self) -> usize {
        self.stored / self.ty.block_len() * self.ty.block_bytes()
    }

    /// Stores cells from number `at` on.
    fn put(&mut self, at: usize, cells: &[f32]) {
        let n_byte = self.cell_bytes();
        let mut row = vec![0.0; self.stored];
        for (i, cell) in cells.chunks_exact(self.d).enumerate() {
            row[..self.d].copy_from_slice(cell);
            let out = &mut self.bytes[(at + i) * n_byte..][..n_byte];
            ggml_format::quantize_cells(self.ty, &row, self.stored, out)
                .expect("a type of cache takes whole blocks");
        }
    }

    /// The first `n` cells as f32; where they lie if they are that.
    fn cells(&self, n: usize) -> Cow<'_, [f32]> {
        let out = values(self.ty, &self.bytes[..n * self.cell_bytes()], n * self.stored);
        if self.d == self.stored {
            return out;
        }
        out.chunks_exact(self.stored).flat_map(|cell| cell[..self.d].to_vec()).collect()
    }
}

/// Bytes of weights and cache that [`CpuModel::load`] will take: [`CpuModel::n_byte`], before anything is loaded.
pub fn n_byte(graph: &Graph, (n_ctx, n_seq): (u32, u32), (k, v): (GgmlType, GgmlType)) -> u64 {
    let layer = |l: &KvLayer| {
        let n_cell = u64::from(l.n_kv) * u64::from(n_ctx);
        let values = if l.in_keys { 0 } else { Cache::n_byte(v, n_cell, l.d_v as usize) };
        Cache::n_byte(k, n_cell, l.d as usize).saturating_add(values)
    };
    let states = graph.states.iter().map(|l| 4 * u64::from(l.n) * (1 + STATE_COPIES as u64));
    let seq = graph.kv.iter().map(layer).chain(states).fold(0, u64::saturating_add);
    let weights: u64 = graph.weights.iter().map(Weight::n_byte).sum();
    weights.saturating_add(seq.saturating_mul(n_seq.into()))
}

/// The matrices of products that are not by experts, with what they are multiplied by.
fn products(op: &Op) -> Vec<(ValueId, WeightId)> {
    match op {
        Op::MulMat { x, weight, .. } => vec![(*x, *weight)],
        Op::Products { x, parts } => parts.iter().map(|p| (*x, p.weight)).collect(),
        _ => vec![],
    }
}

/// The logits and what they are made of value by value, back to the product, and to those that adapters add to it.
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
        (n_ctx, n_seq): (u32, u32),
        (k, v): (GgmlType, GgmlType),
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
        let layer = |l: &KvLayer| {
            let n_cell = u64::from(l.n_kv) * u64::from(n_ctx);
            Ok([Cache::new(k, n_cell, l.d)?, Cache::new(v, if l.in_keys { 0 } else { n_cell }, l.d_v)?])
        };
        let state: Vec<Vec<f32>> = graph.states.iter().map(|l| vec![0.0; l.n as usize]).collect();
        let kept = vec![state.clone(); if state.is_empty() { 0 } else { STATE_COPIES }];
        let mut seqs = Vec::new();
        for _ in 0..n_seq {
            let kv: Result<Vec<[Cache; 2]>, RuntimeError> = graph.kv.iter().map(layer).collect();
            seqs.push(Sequence { kv: kv?, state: state.clone(), kept: kept.clone(), state_at: 0 });
        }
        let (last_use, graph) = (graph.last_use(), Arc::new(graph));
        Ok(CpuModel { graph, last_use, in_16_bits: false, weights, seqs, at: 0, n_ctx })
    }

    /// Products with formats that have codes ([`ggml_format::Codes`]) round their inputs to 16 bits, each 32 with a scale,
    /// other products and attention are done in f32: several times as fast as the references, and as exact as kernels on a
    /// device. Off at first: then everything is done by the references, with sums in f64.
    pub fn set_inputs_in_16_bits(&mut self, on: bool) {
        self.in_16_bits = on;
    }

    /// What bytes of a snapshot mean: they fit models of which this says the same.
    pub fn snapshot_layout(&self) -> String {
        let layers = self.seq().kv.iter().flatten().map(|c| format!("{} {}", c.ty, c.cell_bytes()));
        let states = self.seq().state.iter().map(|s| format!("s{}", s.len()));
        format!("processor {}", layers.chain(states).collect::<Vec<_>>().join(" "))
    }

    /// Bytes of the first `n` tokens in each part of the cache of the selected sequence.
    fn kept_bytes(&self, n: u32) -> Vec<usize> {
        let layers = self.graph.kv.iter().zip(&self.seq().kv);
        let bytes = |l: &KvLayer, c: &Cache| (n * l.n_kv) as usize * c.cell_bytes();
        layers.flat_map(|(l, kv)| kv.each_ref().map(|c| bytes(l, c).min(c.bytes.len()))).collect()
    }

    /// Bytes of a snapshot of a sequence of `n` tokens.
    pub fn snapshot_bytes(&self, n: u32) -> u64 {
        let states = self.seq().state.iter().map(|s| 4 * s.len());
        self.kept_bytes(n).into_iter().chain(states).map(|n| n as u64).sum()
    }

    /// What there is of the first `n` tokens of the selected sequence, and its state.
    pub fn snapshot(&self, n: u32) -> Vec<u8> {
        let parts = self.seq().kv.iter().flatten().zip(self.kept_bytes(n));
        let mut out: Vec<u8> = parts.flat_map(|(c, n)| &c.bytes[..n]).copied().collect();
        out.extend(self.seq().state.iter().flatten().flat_map(|v| v.to_le_bytes()));
        out
    }

    /// Puts a snapshot of [`Self::snapshot_bytes`] back: the selected sequence has seen `n` tokens then.
    pub fn put_back(&mut self, n: u32, mut bytes: &[u8]) {
        let sizes = self.kept_bytes(n);
        let seq = self.seq_mut();
        for (cache, n) in seq.kv.iter_mut().flatten().zip(sizes) {
            let (part, rest) = bytes.split_at(n);
            cache.bytes[..n].copy_from_slice(part);
            bytes = rest;
        }
        for (v, b) in seq.state.iter_mut().flatten().zip(bytes.chunks_exact(4)) {
            *v = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        }
        seq.state_at = n;
    }

    fn seq(&self) -> &Sequence {
        &self.seqs[self.at]
    }

    fn seq_mut(&mut self) -> &mut Sequence {
        &mut self.seqs[self.at]
    }

    /// Runs this sequence from now on.
    pub fn select(&mut self, seq: u32) {
        assert!((seq as usize) < self.seqs.len(), "sequence {seq} of {}", self.seqs.len());
        self.at = seq as usize;
    }

    /// Copies keys and values of the first `n` tokens from one sequence to another.
    pub fn copy_tokens(&mut self, from: u32, to: u32, n: u32) {
        let (from, to) = (from as usize, to as usize);
        for (i, layer) in self.graph.kv.iter().enumerate() {
            for part in 0..2 {
                let source = &self.seqs[from].kv[i][part];
                let n_byte = (n as usize * layer.n_kv as usize * source.cell_bytes()).min(source.bytes.len());
                let bytes = source.bytes[..n_byte].to_vec();
                self.seqs[to].kv[i][part].bytes[..n_byte].copy_from_slice(&bytes);
            }
        }
    }

    /// Whether the model has recurrent state.
    pub fn has_state(&self) -> bool {
        !self.seq().state.is_empty()
    }

    /// Tokens that the recurrent state has seen.
    pub fn state_at(&self) -> Option<u32> {
        Some(self.seq().state_at)
    }

    /// Copies the recurrent state to copy number `i` of [`STATE_COPIES`].
    pub fn keep_state(&mut self, i: usize) {
        let seq = self.seq_mut();
        seq.kept[i].clone_from(&seq.state);
    }

    /// Brings copy number `i` back, which was made after `at` tokens.
    pub fn bring_back_state(&mut self, i: usize, at: u32) {
        let seq = self.seq_mut();
        seq.state.clone_from(&seq.kept[i]);
        seq.state_at = at;
    }

    /// Tokens that a sequence may have.
    pub fn n_ctx(&self) -> u32 {
        self.n_ctx
    }

    /// Sets the scales of adapters, [`AdapterScale::of`](crate::graph::AdapterScale::of) says which.
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
        let seq = self.seq();
        let kv = seq.kv.iter().flatten().map(|c| c.bytes.len() as u64).sum::<u64>();
        let states = seq.kept.iter().flatten().chain(&seq.state);
        let states = states.map(|s| 4 * s.len() as u64).sum::<u64>();
        self.weights.iter().map(|w| w.len() as u64).sum::<u64>() + self.seqs.len() as u64 * (kv + states)
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

    /// Runs tokens at positions from `pos` on; returns the logits of all (`[n, n_vocab]`) or of the last.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] past the context.
    pub fn eval(&mut self, tokens: &[u32], pos: u32, all: bool) -> Result<Vec<f32>, RuntimeError> {
        self.eval_watched(tokens, pos, all, &mut |_| ())
    }

    /// As [`Self::eval`], and shows `watch` the inputs of every product before it is calculated.
    ///
    /// # Errors
    /// As [`Self::eval`].
    pub fn eval_watched(
        &mut self,
        tokens: &[u32],
        pos: u32,
        all: bool,
        watch: Watch<'_>,
    ) -> Result<Vec<f32>, RuntimeError> {
        let result = self.graph.logits;
        // Work is handed out faster from one of the threads that do it.
        platform::among_threads(|| self.run(tokens, pos, result, all, watch))
    }

    /// Runs tokens at positions from `pos` on; returns what the logits of each would be made of, the result of the last norm:
    /// `[n, n_embd]`.
    ///
    /// # Errors
    /// As [`Self::eval`].
    pub fn eval_hidden(&mut self, tokens: &[u32], pos: u32) -> Result<Vec<f32>, RuntimeError> {
        let result = self.graph.hidden;
        platform::among_threads(|| self.run(tokens, pos, result, true, &mut |_| ()))
    }

    /// Runs the nodes up to the one that makes `result`.
    fn run(
        &mut self,
        tokens: &[u32],
        pos: u32,
        result: Option<ValueId>,
        all: bool,
        watch: Watch<'_>,
    ) -> Result<Vec<f32>, RuntimeError> {
        let (found, limit) = (u64::from(pos) + tokens.len() as u64, u64::from(self.n_ctx));
        if found > limit {
            return Err(RuntimeError::Limit { what: "tokens of the sequence", found, limit });
        }
        let at = self.seq().state_at;
        if self.has_state() && !tokens.is_empty() && pos > 0 && at != pos {
            return Err(RuntimeError::State { found: Some(at), pos });
        }
        let n = tokens.len();
        if n > 0 {
            self.seq_mut().state_at = pos + n as u32;
        }
        let graph = self.graph.clone();
        let tail = if all { Vec::new() } else { tail(&graph) };
        let mut values: Vec<Vec<f32>> = vec![Vec::new(); graph.widths.len()];
        for (i, node) in graph.nodes.iter().enumerate() {
            let width = graph.width(node.out) as usize;
            // Only the wanted rows of the result are computed: the head is the largest product.
            let is_head = matches!(node.op, Op::MulMat { .. }) && tail.contains(&node.out);
            let first = if is_head { n.saturating_sub(1) } else { 0 };
            for (x, weight) in products(&node.op) {
                let x = &values[x.0][first * graph.width(x) as usize..];
                watch(ProductInput { weight: &graph.weights[weight.0], matrix: 0, x });
            }
            let out = self.node(&graph, &node.op, &values, tokens, pos, width, first, watch);
            values[node.out.0] = out;
            if result == Some(node.out) {
                break;
            }
            for v in node.op.inputs() {
                if self.last_use[v.0] == i {
                    values[v.0] = Vec::new();
                }
            }
        }
        Ok(result.map(|v| std::mem::take(&mut values[v.0])).unwrap_or_default())
    }

    fn node(
        &mut self,
        graph: &Graph,
        op: &Op,
        values: &[Vec<f32>],
        tokens: &[u32],
        pos: u32,
        width: usize,
        first: usize,
        watch: Watch<'_>,
    ) -> Vec<f32> {
        match op {
            Op::Embed { table } => tokens.iter().flat_map(|t| self.row(*table, *t as usize)).collect(),
            Op::EmbedPosition { table } => {
                (0..tokens.len()).flat_map(|i| self.row(*table, pos as usize + i)).collect()
            }
            Op::RmsNorm { x, weight, eps } => {
                let w = self.vector(*weight);
                let rows = values[x.0].chunks_exact(width);
                rows.flat_map(|r| rms_norm::reference::rms_norm(r, Some(&w), *eps)).collect()
            }
            Op::Norm { x, norm } => self.norm(&values[x.0], width, norm),
            Op::MulMat { x, weight, bias, scale } => {
                let k = graph.width(*x) as usize;
                let part = Product { weight: *weight, bias: *bias, scale: *scale };
                self.product(graph, &mut Columns::new(&values[x.0][first * k..], k), &part)
            }
            Op::Products { x, parts } => {
                let k = graph.width(*x) as usize;
                let mut out = vec![0.0; values[x.0].len() / k.max(1) * width];
                let mut columns = Columns::new(&values[x.0], k);
                let mut at = 0;
                for part in parts {
                    let n = graph.weights[part.weight.0].n_row as usize;
                    let made = self.product(graph, &mut columns, part);
                    for (to, from) in out.chunks_exact_mut(width).zip(made.chunks_exact(n)) {
                        to[at..at + n].copy_from_slice(from);
                    }
                    at += n;
                }
                out
            }
            Op::TopkMoe { x, bias, routing } => {
                let bias = bias.map(|b| self.vector(b));
                let mut out = Vec::new();
                for logits in values[x.0].chunks_exact(graph.width(*x) as usize) {
                    let logits = &logits[..routing.n_expert as usize];
                    for (id, weight) in topk_moe::reference::topk_moe(routing, logits, bias.as_deref()) {
                        // Expert numbers are exact in f32.
                        out.extend([id as f32, weight]);
                    }
                }
                out
            }
            Op::MulMatId { x, route, weight, bias, scale } => {
                let per_slot = graph.slots(*x) > 0;
                self.mul_mat_id(
                    graph,
                    &values[x.0],
                    per_slot,
                    &values[route.0],
                    *weight,
                    *bias,
                    *scale,
                    width,
                    watch,
                )
            }
            Op::MoeReduce { x, route } => {
                let used = graph.slots(*route) as usize;
                let mut out = Vec::new();
                for (rows, route) in
                    values[x.0].chunks_exact(used * width).zip(values[route.0].chunks_exact(2 * used))
                {
                    let rows: Vec<&[f32]> = rows.chunks_exact(width).collect();
                    let weights: Vec<f32> = route.chunks_exact(2).map(|r| r[1]).collect();
                    out.extend(moe_reduce::reference::moe_reduce(&rows, &weights));
                }
                out
            }
            Op::Rope { x, d, rope } => {
                let rope = &graph.ropes[*rope];
                let mut out = values[x.0].clone();
                for (c, row) in out.chunks_exact_mut(width).enumerate() {
                    rope.rotate(row, *d as usize, pos + c as u32);
                }
                out
            }
            Op::KvWrite { k, v, layer } => {
                let n_kv = graph.kv[*layer].n_kv as usize;
                for (cache, value) in self.seq_mut().kv[*layer].iter_mut().zip([k, v]) {
                    cache.put(pos as usize * n_kv, &values[value.0]);
                }
                Vec::new()
            }
            Op::Attention { q, layer, n_head, score, sinks } => {
                let sinks = sinks.map(|s| self.vector(s));
                self.attention(graph, &values[q.0], *layer, *n_head, score, sinks.as_deref(), pos)
            }
            Op::Glu { gate, up, act } => glu::reference::glu(*act, &values[gate.0], &values[up.0]),
            Op::Add { a, b } => values[a.0].iter().zip(&values[b.0]).map(|(a, b)| a + b).collect(),
            Op::Recurrent(op) => self.recurrent(graph, op, values, pos),
            Op::Latent(op) => self.latent(graph, op, values, pos, watch),
            Op::MulHeads { x, weight } => {
                let d = graph.width(*x) as usize / graph.weights[weight.0].n_expert as usize;
                self.mul_heads(graph, &values[x.0], d, *weight, watch)
            }
            Op::AltUp(op) => {
                let (rows, n) = (op.rows as usize, graph.width(op.x) as usize);
                let [router, other] = [op.mix.map(|m| m.0), op.other];
                let weights = op.mix.map(|(_, w)| self.vector(w)).unwrap_or_default();
                let column = |v: Option<ValueId>, c: usize| match v {
                    None => &[][..],
                    Some(v) => {
                        let width = graph.width(v) as usize;
                        &values[v.0][c * width..][..width]
                    }
                };
                let columns = values[op.x.0].chunks_exact(n).enumerate();
                let made = columns.map(|(c, x)| {
                    altup::reference::altup(op.kind, rows, x, column(other, c), column(router, c), &weights)
                });
                made.flatten().collect()
            }
            Op::Cutoff { x, by } => {
                let rows = values[x.0].chunks_exact(width);
                rows.flat_map(|row| cutoff::reference::cutoff(row, *by)).collect()
            }
            Op::MulWeight { x, weight } => {
                let w = self.vector(*weight);
                values[x.0].iter().zip(w.iter().cycle()).map(|(v, w)| v * w).collect()
            }
            Op::Slice { x, at } => {
                let columns = values[x.0].chunks_exact(graph.width(*x) as usize);
                columns.flat_map(|c| &c[*at as usize..][..width]).copied().collect()
            }
            Op::Mul { a, b } => {
                let (a, b) = (&values[a.0], &values[b.0]);
                // One value of b for each of a, or for each column.
                let run = a.len() / b.len().max(1);
                a.iter().enumerate().map(|(i, a)| a * b[i / run]).collect()
            }
            Op::Scale { x, by } => values[x.0].iter().map(|v| v * by).collect(),
            Op::Unary { x, f, params } => {
                let (formula, params) = (unary::Function::of(f).formula, params.map(f64::from));
                values[x.0].iter().map(|v| formula(f64::from(*v), params) as f32).collect()
            }
        }
    }

    /// Norms of the rows of columns that are `width` wide.
    fn norm(&self, x: &[f32], width: usize, n: &RowNorm) -> Vec<f32> {
        let d = n.d as usize;
        let [weight, bias] = [n.weight, n.bias].map(|w| w.map(|w| self.vector(w)));
        let mut out = Vec::with_capacity(x.len());
        for (i, row) in x.chunks_exact(d).enumerate() {
            let row: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
            // Weights are those of every row, or of the column.
            let at = i * d % width;
            for (j, mut v) in norm::reference::norm(n.kind, n.eps.into(), &row).into_iter().enumerate() {
                let of = |w: &Option<Vec<f32>>| w.as_ref().map(|w| f64::from(w[(at + j) % w.len()]));
                v *= of(&weight).unwrap_or(1.0);
                v += of(&bias).unwrap_or(0.0);
                out.push(v as f32);
            }
        }
        out
    }

    /// `[n, slots, width]` from `x`: `[n, k]`, or `[n, slots, k]`; expert by expert, all columns that use it at once.
    fn mul_mat_id(
        &self,
        graph: &Graph,
        x: &[f32],
        per_slot: bool,
        route: &[f32],
        w: WeightId,
        bias: Option<WeightId>,
        scale: Option<WeightId>,
        width: usize,
        watch: Watch<'_>,
    ) -> Vec<f32> {
        let info = &graph.weights[w.0];
        let (k, rows) = (info.n_col as usize, info.expert_rows() as usize);
        let (n_pair, n_x) = (route.len() / 2, x.len() / k.max(1));
        // How many pairs share a column of x.
        let share = if per_slot { 1 } else { n_pair / n_x.max(1) };
        let bias = bias.map(|b| self.vector(b));
        let scale = scale.map(|s| self.vector(s));
        let mut out = vec![0.0; n_pair * width];
        for expert in 0..info.n_expert as usize {
            let pairs: Vec<usize> = (0..n_pair).filter(|p| route[2 * p] as usize == expert).collect();
            if pairs.is_empty() {
                continue;
            }
            let columns: Vec<f32> = pairs.iter().flat_map(|p| &x[p / share * k..][..k]).copied().collect();
            watch(ProductInput { weight: info, matrix: expert as u32, x: &columns });
            let bias = bias.as_ref().map(|b| &b[expert * rows..][..rows]);
            let scale = scale.as_ref().map_or(1.0, |s| s[expert]);
            let mut columns = Columns::new(&columns, k);
            let made = self.mul_mat(&mut columns, w, expert * rows, width, scale, bias);
            for (p, made) in pairs.into_iter().zip(made.chunks_exact(width)) {
                out[p * width..][..width].copy_from_slice(made);
            }
        }
        out
    }

    /// `[n, n_row]` from `x`: `[n, k]`.
    fn product(&self, graph: &Graph, x: &mut Columns<'_>, p: &Product) -> Vec<f32> {
        let scale = p.scale.map_or(1.0, |s| self.vector(s)[0]);
        let bias = p.bias.map(|b| self.vector(b));
        let n_row = graph.weights[p.weight.0].n_row as usize;
        self.mul_mat(x, p.weight, 0, n_row, scale, bias.as_deref())
    }

    /// `[n, width]` from `x`: `[n, k]` and the rows from `row0` on, which are taken in parallel.
    fn mul_mat(
        &self,
        x: &mut Columns<'_>,
        w: WeightId,
        row0: usize,
        width: usize,
        scale: f32,
        bias: Option<&[f32]>,
    ) -> Vec<f32> {
        let info = &self.graph.weights[w.0];
        let (n, k) = (x.n(), info.n_col as usize);
        if n == 0 {
            return Vec::new();
        }
        // Row by row of the matrix, then turned around.
        let mut by_row = vec![0.0; width * n];
        if self.in_16_bits {
            x.round_for(info.ty);
            let (x, row_bytes) = (&*x, info.row_bytes() as usize);
            let rows = SHARE.div_ceil(n * k).next_multiple_of(16);
            platform::fill_chunks(&mut by_row, rows * n, |i, out| {
                let first = row0 + i * rows;
                x.multiply(info.ty, &self.weights[w.0][first * row_bytes..], out);
            });
        } else {
            let x = x.x();
            platform::fill_chunks(&mut by_row, n, |r, out| {
                let row = self.row(w, row0 + r);
                for (o, col) in out.iter_mut().zip(x.chunks_exact(k)) {
                    *o = mul_mat_vec::reference::dot(&row, col) as f32;
                }
            });
        }
        for (r, row) in by_row.chunks_exact_mut(n).enumerate() {
            let b = bias.map_or(0.0, |b| b[r]);
            row.iter_mut().for_each(|v| *v = *v * scale + b);
        }
        if n == 1 {
            return by_row;
        }
        let mut out = vec![0.0; width * n];
        for (c, column) in out.chunks_exact_mut(width).enumerate() {
            for (o, row) in column.iter_mut().zip(by_row.chunks_exact(n)) {
                *o = row[c];
            }
        }
        out
    }

    fn attention(
        &self,
        graph: &Graph,
        q: &[f32],
        layer: usize,
        n_head: u32,
        score: &Score,
        sinks: Option<&[f32]>,
        pos: u32,
    ) -> Vec<f32> {
        let l = graph.kv[layer];
        let (n_kv, d, d_v) = (l.n_kv as usize, l.d as usize, l.d_v as usize);
        let width = n_head as usize * d;
        let n = q.len() / width;
        let n_cell = (pos as usize + n) * n_kv;
        let [k, v] = &self.seq().kv[layer];
        let keys = k.cells(n_cell);
        let own = if l.in_keys { Cow::Owned(Vec::new()) } else { v.cells(n_cell) };
        let (vals, row) = if l.in_keys { (&keys, d) } else { (&own, d_v) };
        let group = n_head as usize / n_kv;
        let mut out = vec![0.0; n * n_head as usize * d_v];
        // Heads of columns that go together.
        let share = if self.in_16_bits { SHARE.div_ceil(((pos as usize + n) * (d + d_v)).max(1)) } else { 1 };
        platform::fill_chunks(&mut out, share * d_v, |i, out| {
            let mut scores = Vec::new();
            for (at, out) in out.chunks_exact_mut(d_v).enumerate() {
                let (c, h) = ((i * share + at) / n_head as usize, (i * share + at) % n_head as usize);
                let cell = |j: usize| j * n_kv + h / group;
                let query = Query {
                    q: &q[c * width + h * d..][..d],
                    score,
                    head: (h as u32, n_head),
                    pos: pos as usize + c,
                    sink: sinks.map(|s| s[h]),
                };
                let key = |j: usize| &keys[cell(j) * d..][..d];
                let value = |j: usize| &vals[cell(j) * row..][..d_v];
                if self.in_16_bits {
                    attention::attention(&query, key, value, &mut scores, out);
                } else {
                    out.copy_from_slice(&query.attention(key, value));
                }
            }
        });
        out
    }
}
