//! Time mixing of RWKV-7, token by token, in f64.

use crate::data::Data;
use crate::matrix_state::reference::outputs_and_states;

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
pub(super) fn rwkv_wkv7(o: &Operands) -> Vec<f64> {
    outputs_and_states(&o.v, &o.s, |row, v, [head, t]| {
        let d: f64 = (0..).zip(&*row).map(|(i, m)| o.a.at([i, head, t, 0]) * m).sum();
        let mut sum = 0.0;
        for (i, m) in (0..).zip(row) {
            *m = *m * o.w.at([i, head, t, 0]) + o.k.at([i, head, t, 0]) * v + d * o.b.at([i, head, t, 0]);
            sum += o.r.at([i, head, t, 0]) * *m;
        }
        sum
    })
}
