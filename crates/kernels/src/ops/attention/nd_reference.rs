//! Attention over tensors of any stride, in f64.

use super::AttentionNd;
use crate::data::Data;
use crate::ops::soft_max::reference::{slope, soft_max};

/// What a call reads.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub(super) q: &'a Data,
    pub(super) k: &'a Data,
    pub(super) v: &'a Data,
    pub(super) mask: Option<&'a Data>,
    pub(super) sinks: Option<&'a Data>,
}

/// Values of y in ggml's order.
pub(super) fn attention_nd(call: &AttentionNd, of: &Operands<'_>) -> Vec<f64> {
    let [d_v, n_head, n_token, n_seq] = call.y.ne;
    let mut out = Vec::with_capacity(call.y.n_elem() as usize);
    for s in 0..n_seq {
        for t in 0..n_token {
            for h in 0..n_head {
                // Where a key or value of this head is.
                let at = |data: &Data, key: u32| {
                    let [_, _, heads, seqs] = data.tensor.ne;
                    data.tensor.index([0, key, h / (n_head / heads), s / (n_seq / seqs)])
                };
                let by = slope(call.max_bias.into(), n_head, h);
                let q: Vec<f64> = (0..call.q.ne[0]).map(|i| of.q.at([i, t, h, s])).collect();
                let score = |key: u32| {
                    let bias = of.mask.map_or(0.0, |m| {
                        let [_, _, heads, seqs] = m.tensor.ne;
                        by * m.at([key, t, h % heads, s % seqs])
                    });
                    if bias == f64::NEG_INFINITY {
                        return bias;
                    }
                    let row = of.k.values()[at(of.k, key)..].iter().step_by(call.k.stride[0].max(1) as usize);
                    let dot: f64 = q.iter().zip(row).map(|(a, b)| a * b).sum();
                    let dot = dot * f64::from(call.scale);
                    let cap = f64::from(call.softcap);
                    bias + if cap == 0.0 { dot } else { cap * (dot / cap).tanh() }
                };
                let scores: Vec<f64> = (0..call.k.ne[1]).map(score).collect();
                let weights = soft_max(&scores, of.sinks.map(|data| data.at([h, 0, 0, 0])));
                let mut y = vec![0.0; d_v as usize];
                for (key, p) in (0..).zip(weights).filter(|(_, p)| *p > 0.0) {
                    let row = of.v.values()[at(of.v, key)..].iter().step_by(call.v.stride[0].max(1) as usize);
                    y.iter_mut().zip(row).for_each(|(y, v)| *y += p * v);
                }
                out.extend(y);
            }
        }
    }
    out
}
