//! The recurrence, token by token, in f64.

use super::SsmScan;
use crate::data::Data;

/// The tensors of a call, in its order.
pub(super) struct Operands {
    pub(super) s: Data,
    pub(super) x: Data,
    pub(super) dt: Data,
    pub(super) a: Data,
    pub(super) b: Data,
    pub(super) c: Data,
    pub(super) ids: Data,
}

/// All values of y: outputs, then states.
pub(super) fn ssm_scan(call: &SsmScan, o: &Operands) -> Vec<f64> {
    let [dim, heads, n_tok, n_seq] = call.x.ne;
    let (s, groups) = (call.s.ne[0], call.b.ne[1]);
    let n_y = (dim * heads * n_tok * n_seq) as usize;
    let mut out = vec![0.0; n_y + (s * dim * heads * n_seq * call.n_snap) as usize];
    for seq in 0..n_seq {
        // A negative number is a large one without its sign.
        let from = (o.ids.at([seq, 0, 0, 0]) as i32 as u32).min(call.s.ne[3] - 1);
        for head in 0..heads {
            let g = head / (heads / groups);
            for j in 0..dim {
                let mut m: Vec<f64> = (0..s).map(|i| o.s.at([i, j, head, from])).collect();
                for t in 0..n_tok {
                    let raw = o.dt.at([head, t, seq, 0]);
                    let d = if raw > 20.0 { raw } else { raw.exp().ln_1p() };
                    let x = o.x.at([j, head, t, seq]);
                    let mut sum = 0.0;
                    let all = (d * o.a.at([0, head, 0, 0])).exp();
                    for (i, m) in (0..s).zip(&mut m) {
                        let by = if call.a.ne[0] == 1 { all } else { (d * o.a.at([i, head, 0, 0])).exp() };
                        *m = *m * by + d * x * o.b.at([i, g, t, seq]);
                        sum += *m * o.c.at([i, g, t, seq]);
                    }
                    out[(((seq * n_tok + t) * heads + head) * dim + j) as usize] = sum;
                    let back = n_tok - 1 - t;
                    if back < call.n_snap {
                        let at = n_y + ((((back * n_seq + seq) * heads + head) * dim + j) * s) as usize;
                        out[at..at + s as usize].copy_from_slice(&m);
                    }
                }
            }
        }
    }
    out
}
