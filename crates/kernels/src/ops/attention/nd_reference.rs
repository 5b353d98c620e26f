//! Attention over tensors of any stride, in f64.

use super::AttentionNd;
use crate::data::Data;
use crate::ops::soft_max::reference::{slope, soft_max};

/// Operands of a call.
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
                // One channel of a key or value of this head.
                let at = |data: &Data, i: u32, key: u32| {
                    let [_, _, heads, seqs] = data.tensor.ne;
                    data.at([i, key, h / (n_head / heads), s / (n_seq / seqs)])
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
                    let dot: f64 = (0..).zip(&q).map(|(i, q)| q * at(of.k, i, key)).sum();
                    let dot = dot * f64::from(call.scale);
                    let cap = f64::from(call.softcap);
                    bias + if cap == 0.0 { dot } else { cap * (dot / cap).tanh() }
                };
                let scores: Vec<f64> = (0..call.k.ne[1]).map(score).collect();
                let weights = soft_max(&scores, of.sinks.map(|data| data.at([h, 0, 0, 0])));
                let mut y = vec![0.0; d_v as usize];
                for (key, p) in (0..).zip(weights).filter(|(_, p)| *p > 0.0) {
                    (0..).zip(&mut y).for_each(|(i, y)| *y += p * at(of.v, i, key));
                }
                out.extend(y);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;
    use ggml_format::GgmlType;

    /// Two heads sharing one KV head, softcapped scores, a mask, slopes and sinks.
    #[test]
    fn two_tokens_by_hand() {
        let f32 = |ne| Tensor::new(GgmlType::F32, ne);
        let call = AttentionNd {
            q: f32([1, 2, 2, 1]),
            k: f32([1, 2, 1, 1]),
            v: f32([1, 2, 1, 1]),
            mask: Some(Tensor::new(GgmlType::F16, [2, 2, 1, 1])),
            sinks: Some(f32([2, 1, 1, 1])),
            scale: std::f32::consts::LN_2,
            softcap: 1.0,
            max_bias: 8.0,
            y: f32([1, 2, 2, 1]),
        };
        let of = |t: Tensor, values: &[f32]| Data::of(t, values, 0);
        let q = of(call.q, &[1.0, 3.0, 2.0, 4.0]);
        let (k, v) = (of(call.k, &[0.0, 1.0]), of(call.v, &[10.0, 20.0]));
        let mask = call.mask.map(|t| of(t, &[0.0, 16.0, 0.0, f32::NEG_INFINITY]));
        let sinks = call.sinks.map(|t| of(t, &[0.0, 0.0]));
        let of = Operands { q: &q, k: &k, v: &v, mask: mask.as_ref(), sinks: sinks.as_ref() };
        // tanh(ln 2) = 3/5, tanh(2 ln 2) = 15/17; slopes 1/16 and 1/256; a sink of 0 adds 1 to the denominator.
        let seen = |score: f64| (10.0 + 20.0 * score.exp()) / (1.0 + score.exp() + 1.0);
        let want = [seen(0.6 + 1.0), seen(15.0 / 17.0 + 1.0 / 16.0), 5.0, 5.0];
        for (found, want) in attention_nd(&call, &of).into_iter().zip(want) {
            assert!((found - want).abs() < 1e-6, "{found} {want}");
        }
    }
}
