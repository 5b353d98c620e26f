//! Gated linear attention, token by token, in f64.

use crate::data::Data;
use crate::matrix_state::reference::outputs_and_states;

/// The tensors of a call, in its order.
pub(super) struct Operands {
    pub(super) k: Data,
    pub(super) v: Data,
    pub(super) q: Data,
    pub(super) g: Data,
    pub(super) s: Data,
}

/// All values of y: outputs, then states.
pub(super) fn gated_linear_attn(scale: f32, o: &Operands) -> Vec<f64> {
    outputs_and_states(&o.v, &o.s, |row, v, [head, t]| {
        let mut sum = 0.0;
        for (i, m) in (0..).zip(row) {
            *m = *m * o.g.at([i, head, t, 0]) + o.k.at([i, head, t, 0]) * v;
            sum += f64::from(scale) * o.q.at([i, head, t, 0]) * *m;
        }
        sum
    })
}
