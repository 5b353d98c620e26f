//! Cases of `gated_norm`.

use chaski_graph::recurrent::{GateAct, NormAt};

use super::{GatedNorm, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (k, per, n_col) in
        [(256, 2, 1), (64, 5, 7), (33, 3, 4), (1, 1, 1), (1500, 1, 3), (128, 1, 300), (8, 2, 0)]
    {
        for act in [GateAct::Silu, GateAct::Sigmoid, GateAct::Softplus] {
            for norm in [NormAt::First, NormAt::Last] {
                out.push(case(k, per, n_col, act, Some((norm, k % 2 == 0, 1e-5)), (false, false)));
            }
            for z_row in [false, true] {
                out.push(case(k, per, n_col, act, None, (z_row, per % 2 == 1)));
            }
        }
    }
    out
}

fn case(
    k: u32,
    per: u32,
    n_col: u32,
    act: GateAct,
    norm: Option<(NormAt, bool, f32)>,
    (z_row, add): (bool, bool),
) -> Case {
    let n = per * k;
    let ld = [n + 1, 2 * n + 3, n + 2];
    let call = GatedNorm { k, per, n_col, ld, z_at: n + 2, z_row, add, act, norm };
    let [ldx, ldz, ldy] = call.ld.map(|n| n as usize);
    let cols = n_col.max(1) as usize;
    let (x, z, w) =
        (random_values(1, ldx * cols), random_values(2, ldz * cols), random_values(3, n as usize));
    let mut y = vec![7.0; ldy * cols];
    for (c, r) in (0..n_col as usize).flat_map(|c| (0..per as usize).map(move |r| (c, r))) {
        let k = k as usize;
        let norm = norm.map(|(at, own, eps)| (at, &w[if own { r * k } else { 0 }..][..k], eps));
        let z = &z[c * ldz + call.z_at as usize..];
        let z = if z_row { vec![z[r]; k] } else { z[r * k..][..k].to_vec() };
        let row = reference::gated_norm(&x[c * ldx + r * k..][..k], &z, act, norm);
        for (y, v) in y[c * ldy + r * k..].iter_mut().zip(row) {
            *y = if add { *y + v } else { v };
        }
    }
    let mut buffers = vec![CaseBuffer::input("x", &x), CaseBuffer::input("z", &z)];
    if norm.is_some() {
        buffers.push(CaseBuffer::input("aux", &w));
    }
    let expect = Expected::F32 { values: y, max_nmse: 1e-10 };
    buffers.push(CaseBuffer::output("y", &vec![7.0f32; ldy * cols], expect));
    Case::new(
        format!("{k}x{per}x{n_col} {act:?} {norm:?} z_row {z_row} add {add}"),
        move |caps| call.dispatch(caps),
        buffers,
    )
}
