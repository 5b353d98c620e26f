//! Time mixing of RWKV-7, token by token, in f64.

use super::RwkvWkv7;
use crate::data::Data;

/// The tensors of a call, in its order.
pub(super) struct Operands {
    pub(super) r: Data,
    pub(super) w: Data,
    pub(super) k: Data,
    pub(super) v: Data,
    pub(super) a: Data,
    pub(super) b: Data,
    pub(super) s: Data,
}

/// All values of y: outputs, then states.
pub(super) fn rwkv_wkv7(call: &RwkvWkv7, o: &Operands) -> Vec<f64> {
    let [s, heads, tokens, _] = call.v.ne;
    let n_seq = call.s.ne[3];
    let n_y = call.v.n_elem() as usize;
    let mut out = vec![0.0; n_y + call.s.n_elem() as usize];
    for (seq, head) in (0..n_seq).flat_map(|q| (0..heads).map(move |h| (q, h))) {
        for j in 0..s {
            let mut m: Vec<f64> = (0..s).map(|i| o.s.at([i, j, head, seq])).collect();
            for t in seq * (tokens / n_seq)..(seq + 1) * (tokens / n_seq) {
                let v = o.v.at([j, head, t, 0]);
                let d: f64 = (0..s).zip(&m).map(|(i, m)| o.a.at([i, head, t, 0]) * m).sum();
                let mut sum = 0.0;
                for (i, m) in (0..s).zip(&mut m) {
                    *m = *m * o.w.at([i, head, t, 0])
                        + o.k.at([i, head, t, 0]) * v
                        + d * o.b.at([i, head, t, 0]);
                    sum += o.r.at([i, head, t, 0]) * *m;
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
