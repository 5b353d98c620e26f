//! The nodes of a graph on the CPU, for all rows of a step at once.

use chaski_graph::Act;
use chaski_kernels::ops::{altup, cutoff, glu, moe_reduce, norm, rms_norm, topk_moe, unary};
use ggml_format::product::{Columns, swiglu};

use super::{CpuModel, Row, Watch};
use crate::graph::{Graph, Op, Product, RowNorm, ValueId};

impl CpuModel {
    /// The result of a node.
    pub(super) fn node(
        &mut self,
        graph: &Graph,
        op: &Op,
        values: &[Vec<f32>],
        rows: &[Row],
        width: usize,
        watch: Watch<'_>,
    ) -> Vec<f32> {
        match op {
            Op::Embed { table } => rows.iter().flat_map(|r| self.row(*table, r.token as usize)).collect(),
            Op::Input { x } => {
                let mut out = values[x.0].clone();
                for (column, row) in out.chunks_exact_mut(width).zip(rows) {
                    if let Some(input) = row.input {
                        column.copy_from_slice(&self.inputs[input as usize * width..][..width]);
                    }
                }
                out
            }
            Op::EmbedPosition { table } => {
                rows.iter().flat_map(|r| self.row(*table, r.pos as usize)).collect()
            }
            Op::RmsNorm { x, weight, eps } => {
                let (w, x) = (self.vector(*weight), &values[x.0]);
                self.rows(x.len() / width, width, |r, out| {
                    let x = &x[r * width..][..width];
                    out.copy_from_slice(&rms_norm::reference::rms_norm(x, Some(&w), *eps));
                })
            }
            Op::Norm { x, norm } => self.norm(&values[x.0], width, norm),
            Op::MulMat { x, weight, bias, scale } => {
                let k = graph.width(*x) as usize;
                let part = Product { weight: *weight, bias: *bias, scale: *scale };
                self.product(graph, &mut Columns::new(&values[x.0], k), &part, rows)
            }
            Op::Products { x, parts } => {
                let k = graph.width(*x) as usize;
                let mut columns = Columns::new(&values[x.0], k);
                let made: Vec<Vec<f32>> =
                    parts.iter().map(|part| self.product(graph, &mut columns, part, rows)).collect();
                let out = self.rows(columns.n(), width, |c, out| {
                    let mut at = 0;
                    for (part, made) in parts.iter().zip(&made) {
                        let n = graph.weights[part.weight.0].n_row as usize;
                        out[at..at + n].copy_from_slice(&made[c * n..][..n]);
                        at += n;
                    }
                });
                made.into_iter().for_each(|made| self.buffers.give(made));
                out
            }
            Op::TopkMoe { x, bias, routing } => {
                let bias = bias.map(|b| self.vector(b));
                let mut out = Vec::new();
                for logits in values[x.0].chunks_exact(graph.width(*x) as usize) {
                    let logits = &logits[..routing.n_expert as usize];
                    for (id, weight) in topk_moe::reference::topk_moe(routing, logits, bias.as_deref()) {
                        // Expert indices are exact in f32.
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
                    rows,
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
                let x = &values[x.0];
                self.rows(rows.len(), width, |r, out| {
                    out.copy_from_slice(&x[r * width..][..width]);
                    rope.rotate_by(out, *d as usize, rows[r].components);
                })
            }
            Op::KvWrite { k, v, layer } => {
                for (part, value) in [k, v].into_iter().enumerate() {
                    let width = graph.width(*value) as usize;
                    for (cells, row) in values[value.0].chunks_exact(width).zip(rows) {
                        let at = self.seqs.cell_of(*layer, row.seq, row.pos);
                        self.seqs.kv[*layer][part].put(at, cells);
                    }
                }
                Vec::new()
            }
            Op::Attention { q, layer, n_head, score, sinks } => {
                let sinks = sinks.map(|s| self.vector(s));
                self.attention(graph, &values[q.0], *layer, *n_head, score, sinks.as_deref(), rows)
            }
            Op::Bidirectional(op) => self.bidirectional(graph, op, values, rows),
            Op::Glu { gate, up, act } => self.glu(*act, &values[gate.0], &values[up.0]),
            Op::Add { a, b } => self.zip(&values[a.0], &values[b.0], |a, b| a + b),
            Op::Recurrent(op) => self.recurrent(graph, op, values, rows),
            Op::Latent(op) => self.latent(graph, op, values, rows, watch),
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
                let columns = values[x.0].chunks_exact(width);
                columns.flat_map(|row| cutoff::reference::cutoff(row, *by)).collect()
            }
            Op::MulWeight { x, weight } => {
                let w = self.vector(*weight);
                let run = width / w.len();
                values[x.0]
                    .chunks_exact(run)
                    .zip(w.iter().cycle())
                    .flat_map(|(v, w)| v.iter().map(move |v| v * w))
                    .collect()
            }
            Op::AddWeight { x, weight } => {
                let w = self.vector(*weight);
                values[x.0]
                    .chunks_exact(width)
                    .flat_map(|row| row.iter().zip(&w).map(|(v, w)| v + w))
                    .collect()
            }
            Op::Slice { x, at } => {
                let (from, x) = (graph.width(*x) as usize, &values[x.0]);
                self.rows(rows.len(), width, |r, out| {
                    out.copy_from_slice(&x[r * from + *at as usize..][..width]);
                })
            }
            Op::Mul { a, b } => {
                let (a, b) = (&values[a.0], &values[b.0]);
                // One value of b for each of a, or for each column.
                let run = a.len() / b.len().max(1);
                a.iter().enumerate().map(|(i, a)| a * b[i / run]).collect()
            }
            Op::Scale { x, by } => self.map(&values[x.0], |v| v * by),
            Op::Unary { x, f, params } => {
                let (formula, params) = (unary::Function::of(f).formula, params.map(f64::from));
                self.map(&values[x.0], |v| formula(f64::from(v), params) as f32)
            }
        }
    }

    /// Norms of the rows of columns of `width` values.
    fn norm(&self, x: &[f32], width: usize, n: &RowNorm) -> Vec<f32> {
        let d = n.d as usize;
        let [weight, bias] = [n.weight, n.bias].map(|w| w.map(|w| self.vector(w)));
        self.rows(x.len() / d, d, |i, out| {
            let row: Vec<f64> = x[i * d..][..d].iter().map(|v| f64::from(*v)).collect();
            // Weights are per row or per column.
            let at = i * d % width;
            let normed = norm::reference::norm(n.kind, n.eps.into(), &row);
            for (j, (out, mut v)) in out.iter_mut().zip(normed).enumerate() {
                let of = |w: &Option<Vec<f32>>| w.as_ref().map(|w| f64::from(w[(at + j) % w.len()]));
                v *= of(&weight).unwrap_or(1.0);
                v += of(&bias).unwrap_or(0.0);
                *out = v as f32;
            }
        })
    }

    fn glu(&self, act: Act, gate: &[f32], up: &[f32]) -> Vec<f32> {
        self.parts(gate.len(), |at, out| {
            let (gate, up) = (&gate[at..][..out.len()], &up[at..][..out.len()]);
            match act {
                Act::Swiglu if self.in_16_bits => swiglu(gate, up, out),
                _ => out.copy_from_slice(&glu::reference::glu(act, gate, up)),
            }
        })
    }
}
