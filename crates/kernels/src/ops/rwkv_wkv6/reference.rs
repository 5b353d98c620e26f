//! Time mixing of RWKV-6, token by token, in f64.

use crate::data::Data;
use crate::matrix_state::reference::outputs_and_states;

/// The tensors of a call, in its order.
pub(super) struct Operands {
    pub(super) k: Data,
    pub(super) v: Data,
    pub(super) r: Data,
    pub(super) tf: Data,
    pub(super) td: Data,
    pub(super) s: Data,
}

/// All values of y: outputs, then states.
pub(super) fn rwkv_wkv6(o: &Operands) -> Vec<f64> {
    outputs_and_states(&o.v, &o.s, |row, v, [head, t]| {
        let mut sum = 0.0;
        for (i, m) in (0..).zip(row) {
            let kv = o.k.at([i, head, t, 0]) * v;
            sum += o.r.at([i, head, t, 0]) * (o.tf.at([i, head, 0, 0]) * kv + *m);
            *m = *m * o.td.at([i, head, t, 0]) + kv;
        }
        sum
    })
}
