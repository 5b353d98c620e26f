//! Recurrent operations on the CPU, through the operations' references.

use std::ops::Range;

use chaski_kernels::ops::gated_delta_net::reference::{Head, Inputs};
use chaski_kernels::ops::{gated_norm, short_conv, ssm_scan};

use super::{CpuModel, Row, runs};
use crate::graph::Graph;
use crate::graph::recurrent::{DeltaNet, GatedNorm, Recurrent, Scan, ShortConv, View};

/// A view of the values of some columns.
struct Part<'a> {
    values: &'a [f32],
    width: usize,
    at: usize,
}

impl Part<'_> {
    /// Value `i` of column `t`.
    fn at(&self, t: usize, i: usize) -> f32 {
        self.values[t * self.width + self.at + i]
    }

    /// `n` values of column `t` from `first`.
    fn row(&self, t: usize, first: usize, n: usize) -> &[f32] {
        &self.values[t * self.width + self.at + first..][..n]
    }

    fn n_col(&self) -> usize {
        self.values.len() / self.width.max(1)
    }
}

fn part<'a>(graph: &Graph, values: &'a [Vec<f32>], v: View, columns: &Range<usize>) -> Part<'a> {
    let width = graph.width(v.of) as usize;
    Part { values: &values[v.of.0][columns.start * width..columns.end * width], width, at: v.at as usize }
}

impl CpuModel {
    /// The result of an operation, sequence by sequence.
    pub(super) fn recurrent(
        &mut self,
        graph: &Graph,
        op: &Recurrent,
        values: &[Vec<f32>],
        rows: &[Row],
    ) -> Vec<f32> {
        let state = match op {
            Recurrent::ShortConv(o) => o.state,
            Recurrent::Scan(o) => o.state,
            Recurrent::DeltaNet(o) => o.state,
            Recurrent::GatedNorm(o) => return self.gated_norm(graph, o, values, &(0..rows.len())),
        };
        let mut out = Vec::new();
        for run in runs(rows) {
            let Row { seq, pos, .. } = rows[run.start];
            // Moved out of the sequence while the operation updates it.
            let mut of_seq = std::mem::take(&mut self.seqs.states[seq as usize][state]);
            if pos == 0 {
                of_seq.fill(0.0);
            }
            out.extend(match op {
                Recurrent::ShortConv(o) => self.short_conv(graph, o, values, &run, &mut of_seq),
                Recurrent::Scan(o) => self.scan(graph, o, values, &run, &mut of_seq),
                Recurrent::DeltaNet(o) => self.delta_net(graph, o, values, &run, &mut of_seq),
                Recurrent::GatedNorm(_) => unreachable!("it has no state"),
            });
            self.seqs.states[seq as usize][state] = of_seq;
        }
        out
    }

    fn short_conv(
        &self,
        graph: &Graph,
        o: &ShortConv,
        values: &[Vec<f32>],
        columns: &Range<usize>,
        state: &mut [f32],
    ) -> Vec<f32> {
        let (n, taps) = (o.n as usize, o.taps as usize);
        let x = part(graph, values, o.x, columns);
        let gate = |at: u32| part(graph, values, View { of: o.x.of, at }, columns);
        let gates = o.gates.map(|[before, after]| (gate(before), gate(after)));
        let weight = self.vector(o.weight);
        let bias = o.bias.map(|b| self.vector(b));
        let mut out = vec![0.0; n * x.n_col()];
        for c in 0..n {
            let before = |t| gates.as_ref().map_or(1.0, |(g, _)| g.at(t, c));
            let u: Vec<f32> = (0..x.n_col()).map(|t| x.at(t, c) * before(t)).collect();
            let mut line: Vec<f32> = (0..taps - 1).map(|j| state[j * n + c]).collect();
            let bias = bias.as_ref().map_or(0.0, |b| b[c]);
            let made =
                short_conv::reference::channel(&mut line, &weight[c * taps..][..taps], bias, o.silu, &u);
            for (t, v) in made.into_iter().enumerate() {
                out[t * n + c] = v * gates.as_ref().map_or(1.0, |(_, g)| g.at(t, c));
            }
            line.into_iter().enumerate().for_each(|(j, v)| state[j * n + c] = v);
        }
        out
    }

    fn scan(
        &self,
        graph: &Graph,
        o: &Scan,
        values: &[Vec<f32>],
        columns: &Range<usize>,
        state: &mut [f32],
    ) -> Vec<f32> {
        let [x, b, c, dt] = [o.x, o.b, o.c, o.dt].map(|v| part(graph, values, v, columns));
        let decays = self.vector(o.a);
        let [skip, bias] = [o.skip, o.dt_bias].map(|w| w.map(|w| self.vector(w)));
        let (n_state, dim, n_col) = (o.n_state as usize, o.dim as usize, x.n_col());
        let width = dim * o.heads as usize;
        let mut out = vec![0.0; width * n_col];
        for (row, state) in state.chunks_exact_mut(n_state).enumerate() {
            let head = row / dim;
            let group = head / (o.heads / o.groups) as usize;
            let n_decay = if o.fine { n_state } else { 1 };
            let of_head = |v: &Option<Vec<f32>>| v.as_ref().map_or(0.0, |v| v[head]);
            let made = ssm_scan::reference::columns(
                state,
                &decays[head * n_decay..][..n_decay],
                n_col,
                (of_head(&skip), of_head(&bias)),
                (|t| dt.at(t, head), |t| x.at(t, row)),
                |t, i| b.at(t, group * n_state + i),
                |t, i| c.at(t, group * n_state + i),
            );
            made.into_iter().enumerate().for_each(|(t, v)| out[t * width + row] = v);
        }
        out
    }

    fn delta_net(
        &self,
        graph: &Graph,
        o: &DeltaNet,
        values: &[Vec<f32>],
        columns: &Range<usize>,
        state: &mut [f32],
    ) -> Vec<f32> {
        let [qkv, alpha, beta] = [o.qkv, o.alpha, o.beta].map(|v| part(graph, values, v, columns));
        let (a, bias) = (self.vector(o.a), self.vector(o.bias));
        let (dim, heads, k_heads) = (o.dim as usize, o.heads as usize, o.k_heads as usize);
        let n_col = qkv.n_col();
        let mut out = vec![0.0; heads * dim * n_col];
        for (h, state) in state.chunks_exact_mut(dim * dim).enumerate() {
            let of_k = if o.neighbours { h / (heads / k_heads) } else { h % k_heads };
            let head = Head { a: a[h], bias: bias[h], eps: o.eps };
            let inputs = (0..n_col).map(|t| Inputs {
                q: qkv.row(t, of_k * dim, dim),
                k: qkv.row(t, (k_heads + of_k) * dim, dim),
                v: qkv.row(t, (2 * k_heads + h) * dim, dim),
                alpha: alpha.at(t, h),
                beta: beta.at(t, h),
            });
            for (t, row) in head.columns(state, inputs).chunks_exact(dim).enumerate() {
                out[(t * heads + h) * dim..][..dim].copy_from_slice(row);
            }
        }
        out
    }

    fn gated_norm(
        &self,
        graph: &Graph,
        o: &GatedNorm,
        values: &[Vec<f32>],
        columns: &Range<usize>,
    ) -> Vec<f32> {
        let (x, z) = (part(graph, values, o.x.into(), columns), part(graph, values, o.z, columns));
        let k = o.k as usize;
        let weight = o.norm.map(|n| self.vector(n.weight));
        let mut out = Vec::new();
        for t in 0..x.n_col() {
            for row in 0..x.width / k {
                let norm = o
                    .norm
                    .zip(weight.as_ref())
                    .map(|(n, w)| (n.at, if n.own { &w[row * k..][..k] } else { &w[..k] }, n.eps));
                let z = if o.z_row { vec![z.at(t, row); k] } else { z.row(t, row * k, k).to_vec() };
                out.extend(gated_norm::reference::gated_norm(x.row(t, row * k, k), &z, o.act, norm));
            }
        }
        out
    }
}
