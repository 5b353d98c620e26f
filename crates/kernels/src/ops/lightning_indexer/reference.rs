//! Scores of the indexer, in f64.

use crate::data::{Data, each};
use crate::tensor::Tensor;

/// Values of y in ggml's order.
pub fn lightning_indexer(q: &Data, k: &Data, w: &Data, mask: &Data, y: &Tensor) -> Vec<f64> {
    let [n, heads, n_tok, n_seq] = q.tensor.ne;
    let row = |d: &Data, at: [u32; 3]| (0..n).map(|i| d.at([i, at[0], at[1], at[2]])).collect::<Vec<f64>>();
    let queries: Vec<Vec<f64>> = (0..heads * n_tok * n_seq)
        .map(|i| row(q, [i % heads, i / heads % n_tok, i / heads / n_tok]))
        .collect();
    let keys: Vec<Vec<f64>> = (0..y.ne[0] * n_seq).map(|i| row(k, [0, i % y.ne[0], i / y.ne[0]])).collect();
    each(y)
        .map(|[key, t, _, s]| {
            let key_row = &keys[(s * y.ne[0] + key) as usize];
            let scores = (0..heads).map(|h| {
                let q = &queries[((s * n_tok + t) * heads + h) as usize];
                let dot: f64 = q.iter().zip(key_row).map(|(a, b)| a * b).sum();
                dot.max(0.0) * w.at([h, t, 0, s])
            });
            mask.wrapped([key, t, 0, s]) + scores.sum::<f64>()
        })
        .collect()
}
