//! Gated linear attention, token by token, in f64.

use super::GatedLinearAttn;
use crate::data::Data;

/// The tensors of a call, in its order.
pub(super) struct Operands {
    pub(super) k: Data,
    pub(super) v: Data,
    pub(super) q: Data,
    pub(super) g: Data,
    pub(super) s: Data,
}

/// All values of y: outputs, then states.
pub(super) fn gated_linear_attn(call: &GatedLinearAttn, o: &Operands) -> Vec<f64> {
    let [s, heads, tokens, _] = call.v.ne;
    let n_seq = call.s.ne[3];
    let n_y = call.v.n_elem() as usize;
    let mut out = vec![0.0; n_y + call.s.n_elem() as usize];
    for (seq, head) in (0..n_seq).flat_map(|q| (0..heads).map(move |h| (q, h))) {
        for j in 0..s {
            let mut m: Vec<f64> = (0..s).map(|i| o.s.at([i, j, head, seq])).collect();
            for t in seq * (tokens / n_seq)..(seq + 1) * (tokens / n_seq) {
                let v = o.v.at([j, head, t, 0]);
                let mut sum = 0.0;
                for (i, m) in (0..s).zip(&mut m) {
                    *m = *m * o.g.at([i, head, t, 0]) + o.k.at([i, head, t, 0]) * v;
                    sum += f64::from(call.scale) * o.q.at([i, head, t, 0]) * *m;
                }
                out[((t * heads + head) * s + j) as usize] = sum;
            }
            for (i, m) in (0..s).zip(m) {
                out[n_y + call.s.index([i, j, head, seq])] = m;
            }
        }
    }
    out
}
