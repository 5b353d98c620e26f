//! The CPU executor: interprets the graph through the operations' references. Slow and obvious; the oracle, and the
//! way out where there is no GPU.

use chaski_kernels::ops::{attention, glu, mul_mat_vec, rms_norm};
use half::f16;

use crate::error::RuntimeError;
use crate::gpu::Tensors;
use crate::graph::{Graph, Op, Weight, WeightId};
use crate::platform;

/// A loaded model.
pub struct CpuModel {
    graph: Graph,
    /// Every tensor in the file's format.
    weights: Vec<Vec<u8>>,
    /// Keys and values of every layer: `[n_ctx, n_kv * d]`.
    kv: Vec<[Cache; 2]>,
    n_ctx: u32,
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

/// Cells of a cache.
enum Cache {
    F32(Vec<f32>),
    F16(Vec<f16>),
}

impl Cache {
    fn new(n: usize, half: bool) -> Self {
        if half { Cache::F16(vec![f16::ZERO; n]) } else { Cache::F32(vec![0.0; n]) }
    }

    fn put(&mut self, at: usize, values: &[f32]) {
        match self {
            Cache::F32(c) => c[at..at + values.len()].copy_from_slice(values),
            Cache::F16(c) => c[at..].iter_mut().zip(values).for_each(|(c, v)| *c = f16::from_f32(*v)),
        }
    }

    /// The first `n` values as f32.
    fn values(&self, n: usize) -> std::borrow::Cow<'_, [f32]> {
        match self {
            Cache::F32(c) => (&c[..n]).into(),
            Cache::F16(c) => c[..n].iter().map(|v| v.to_f32()).collect::<Vec<_>>().into(),
        }
    }
}

impl CpuModel {
    /// Reads all tensors into memory.
    ///
    /// # Errors
    /// [`RuntimeError::Tensor`], or [`RuntimeError::NoDequantizer`] for a type that cannot be computed with.
    pub async fn load(
        graph: Graph,
        n_ctx: u32,
        kv_f16: bool,
        tensors: &impl Tensors,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Self, RuntimeError> {
        let total = graph.weights.iter().map(Weight::n_byte).sum();
        let (mut weights, mut done) = (Vec::new(), 0);
        for w in &graph.weights {
            if w.ty.info().dequantize.is_none() {
                return Err(RuntimeError::NoDequantizer { tensor: w.name.clone(), ty: w.ty });
            }
            let mut bytes = vec![0; w.n_byte() as usize];
            let read = tensors.read(&w.name, w.offset(0), &mut bytes).await;
            read.map_err(|source| RuntimeError::Tensor { tensor: w.name.clone(), source })?;
            done += bytes.len() as u64;
            progress(done, total);
            weights.push(bytes);
        }
        let cell = |n_kv: u32, d: u32| Cache::new((n_kv * d) as usize * n_ctx as usize, kv_f16);
        let kv = graph.kv.iter().map(|l| [cell(l.n_kv, l.d), cell(l.n_kv, l.d)]).collect();
        Ok(CpuModel { graph, weights, kv, n_ctx })
    }

    /// Tokens that a sequence may have.
    pub fn n_ctx(&self) -> u32 {
        self.n_ctx
    }

    /// Bytes of weights and cache.
    pub fn n_byte(&self) -> u64 {
        let kv = |c: &Cache| match c {
            Cache::F32(v) => v.len() as u64 * 4,
            Cache::F16(v) => v.len() as u64 * 2,
        };
        self.weights.iter().map(|w| w.len() as u64).sum::<u64>()
            + self.kv.iter().flatten().map(kv).sum::<u64>()
    }

    fn row(&self, w: WeightId, row: usize) -> Vec<f32> {
        let info = &self.graph.weights[w.0];
        chaski_kernels::ops::get_rows::reference::row(info.ty, &self.weights[w.0], info.n_col as usize, row)
    }

    fn vector(&self, w: WeightId) -> Vec<f32> {
        let info = &self.graph.weights[w.0];
        (0..info.n_row as usize).flat_map(|r| self.row(w, r)).collect()
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
        watch: &mut dyn FnMut(ProductInput<'_>),
    ) -> Result<Vec<f32>, RuntimeError> {
        let (found, limit) = (u64::from(pos) + tokens.len() as u64, u64::from(self.n_ctx));
        if found > limit {
            return Err(RuntimeError::Limit { what: "tokens of the sequence", found, limit });
        }
        let n = tokens.len();
        let last_use = self.graph.last_use();
        let graph = self.graph.clone();
        let mut values: Vec<Vec<f32>> = vec![Vec::new(); graph.widths.len()];
        for (i, node) in graph.nodes.iter().enumerate() {
            let width = graph.width(node.out) as usize;
            // Only the wanted rows of the result are computed: the head is the largest product.
            let first = if Some(node.out) == graph.logits && !all { n.saturating_sub(1) } else { 0 };
            if let Op::MulMat { x, weight, .. } = &node.op {
                let x = &values[x.0][first * graph.width(*x) as usize..];
                watch(ProductInput { weight: &graph.weights[weight.0], matrix: 0, x });
            }
            let out = self.node(&graph, &node.op, &values, tokens, pos, width, first);
            values[node.out.0] = out;
            for v in node.op.inputs() {
                if last_use[v.0] == i {
                    values[v.0] = Vec::new();
                }
            }
        }
        Ok(graph.logits.map(|l| std::mem::take(&mut values[l.0])).unwrap_or_default())
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
    ) -> Vec<f32> {
        match op {
            Op::Embed { table } => tokens.iter().flat_map(|t| self.row(*table, *t as usize)).collect(),
            Op::RmsNorm { x, weight, eps } => {
                let w = self.vector(*weight);
                let rows = values[x.0].chunks_exact(width);
                rows.flat_map(|r| rms_norm::reference::rms_norm(r, Some(&w), *eps)).collect()
            }
            Op::MulMat { x, weight, bias, scale } => {
                let k = graph.width(*x) as usize;
                let scale = scale.map_or(1.0, |s| self.vector(s)[0]);
                let bias = bias.map(|b| self.vector(b));
                self.mul_mat(&values[x.0][first * k..], k, *weight, width, scale, bias.as_deref())
            }
            Op::Rope { x, d } => {
                let rope = graph.rope.as_ref().expect("a graph that rotates has a rotation");
                let mut out = values[x.0].clone();
                for (c, row) in out.chunks_exact_mut(width).enumerate() {
                    rope.rotate(row, *d as usize, pos + c as u32);
                }
                out
            }
            Op::KvWrite { k, v, layer } => {
                let w = graph.width(*k) as usize;
                for (half, value) in self.kv[*layer].iter_mut().zip([k, v]) {
                    half.put(pos as usize * w, &values[value.0]);
                }
                Vec::new()
            }
            Op::Attention { q, layer, n_head, scale } => {
                self.attention(graph, &values[q.0], *layer, *n_head, *scale, pos, width)
            }
            Op::Glu { gate, up, act } => glu::reference::glu(*act, &values[gate.0], &values[up.0]),
            Op::Add { a, b } => values[a.0].iter().zip(&values[b.0]).map(|(a, b)| a + b).collect(),
            Op::Scale { x, by } => values[x.0].iter().map(|v| v * by).collect(),
        }
    }

    /// `[n, width]` from `x`: `[n, k]`; rows of the matrix in parallel.
    fn mul_mat(
        &self,
        x: &[f32],
        k: usize,
        w: WeightId,
        width: usize,
        scale: f32,
        bias: Option<&[f32]>,
    ) -> Vec<f32> {
        let n = x.len() / k.max(1);
        // Row by row of the matrix, then turned around.
        let mut by_row = vec![0.0; width * n];
        platform::fill_chunks(&mut by_row, n.max(1), |r, out| {
            let row = self.row(w, r);
            let b = bias.map_or(0.0, |b| b[r]);
            for (o, col) in out.iter_mut().zip(x.chunks_exact(k)) {
                *o = mul_mat_vec::reference::dot(&row, col) as f32 * scale + b;
            }
        });
        let mut out = vec![0.0; width * n];
        for r in 0..width {
            for c in 0..n {
                out[c * width + r] = by_row[r * n + c];
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
        scale: f32,
        pos: u32,
        width: usize,
    ) -> Vec<f32> {
        let l = graph.kv[layer];
        let (d, w) = (l.d as usize, (l.n_kv * l.d) as usize);
        let n = q.len() / width;
        let n_key = pos as usize + n;
        let [k, v] = &self.kv[layer];
        let (keys, vals) = (k.values(n_key * w), v.values(n_key * w));
        let group = (n_head / l.n_kv) as usize;
        let mut out = vec![0.0; q.len()];
        platform::fill_chunks(&mut out, d, |i, out| {
            let (c, h) = (i / n_head as usize, i % n_head as usize);
            let at = |j: usize| j * w + h / group * d;
            let q = &q[c * width + h * d..][..d];
            let n_key = pos as usize + c + 1;
            let r = attention::reference::attention(
                q,
                n_key,
                |j| &keys[at(j)..at(j) + d],
                |j| &vals[at(j)..at(j) + d],
                scale,
            );
            out.copy_from_slice(&r);
        });
        out
    }
}
