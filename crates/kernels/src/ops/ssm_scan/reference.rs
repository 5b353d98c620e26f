//! The recurrence, token by token, in f64.

use super::SsmScan;
use crate::data::Data;

/// ln(1 + exp(v)).
pub fn softplus(v: f64) -> f64 {
    if v > 20.0 { v } else { v.exp().ln_1p() }
}

/// Advances a row of the state by a token with step `d` and input `x`, and returns the output. `decay`, `b` and `c` are
/// functions of the index in the row.
pub fn token(
    m: &mut [f64],
    (d, x): (f64, f64),
    decay: impl Fn(usize) -> f64,
    b: impl Fn(usize) -> f64,
    c: impl Fn(usize) -> f64,
) -> f64 {
    let mut sum = 0.0;
    for (i, m) in m.iter_mut().enumerate() {
        *m = *m * (d * decay(i)).exp() + d * x * b(i);
        sum += *m * c(i);
    }
    sum
}

/// The recurrence of one channel of a head over columns, with its state updated in place.
///
/// `decay` has one value per state value, or one for all; `dt`, `x`, `b` and `c` are functions of the column, `b` and
/// `c` also of the state index. `skip` * x is added to each result, `bias` to each step before softplus.
pub fn columns(
    state: &mut [f32],
    decay: &[f32],
    n_col: usize,
    (skip, bias): (f32, f32),
    (dt, x): (impl Fn(usize) -> f32, impl Fn(usize) -> f32),
    b: impl Fn(usize, usize) -> f32,
    c: impl Fn(usize, usize) -> f32,
) -> Vec<f32> {
    let mut m: Vec<f64> = state.iter().map(|v| f64::from(*v)).collect();
    let decay = |i: usize| f64::from(decay[i.min(decay.len() - 1)]);
    let out = (0..n_col)
        .map(|t| {
            let (d, x) = (softplus(f64::from(dt(t)) + f64::from(bias)), f64::from(x(t)));
            let y = token(&mut m, (d, x), decay, |i| b(t, i).into(), |i| c(t, i).into());
            (y + f64::from(skip) * x) as f32
        })
        .collect();
    state.iter_mut().zip(m).for_each(|(s, m)| *s = m as f32);
    out
}

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
        // A negative id is out of range: large as u32.
        let from = (o.ids.at([seq, 0, 0, 0]) as i32 as u32).min(call.s.ne[3] - 1);
        for head in 0..heads {
            let g = head / (heads / groups);
            for j in 0..dim {
                let mut m: Vec<f64> = (0..s).map(|i| o.s.at([i, j, head, from])).collect();
                for t in 0..n_tok {
                    let d = softplus(o.dt.at([head, t, seq, 0]));
                    let x = o.x.at([j, head, t, seq]);
                    let decay = |i: usize| o.a.at([(i as u32).min(call.a.ne[0] - 1), head, 0, 0]);
                    let b = |i: usize| o.b.at([i as u32, g, t, seq]);
                    let c = |i: usize| o.c.at([i as u32, g, t, seq]);
                    let at = (((seq * n_tok + t) * heads + head) * dim + j) as usize;
                    out[at] = token(&mut m, (d, x), decay, b, c);
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
