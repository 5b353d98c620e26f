//! Cases of `rms_norm`.

use super::{RmsNorm, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for eps in [0.0, 1e-6, 1e-4, 0.1, 10.0] {
        for (k, pad, n_row, weight) in
            [(64, 0, 60, true), (1025, 3, 20, true), (33, 0, 12, false), (1, 0, 3, true), (260, 4, 5, false)]
        {
            out.push(case(k, pad, n_row, eps, weight, false));
            if k % 4 == 0 {
                out.push(case(k, pad, n_row, eps, weight, true));
            }
        }
    }
    out.push(case(8192, 0, 2, 1e-5, true, false));
    out.push(case(8192, 8, 2, 1e-5, true, true));
    out.push(case(8, 0, 70_000, 1e-5, true, false));
    out.push(case(64, 0, 0, 1e-5, true, false));
    out
}

fn case(k: u32, pad: u32, n_row: u32, eps: f32, weight: bool, y_f16: bool) -> Case {
    let ld = k + pad;
    let x = random_values(1, (ld * n_row.max(1)) as usize);
    let w = random_values(2, k as usize);
    let y = vec![7.0f32; x.len()];
    let mut values = y.clone();
    for r in 0..n_row as usize {
        let at = r * ld as usize..r * ld as usize + k as usize;
        values[at.clone()].copy_from_slice(&reference::rms_norm(&x[at], weight.then_some(&w), eps));
    }
    Case::new(
        format!("k{k} ld{ld} n{n_row} eps{eps} w{weight} f16{y_f16}"),
        move |caps| RmsNorm { k, n_row, ldx: ld, ldy: ld, eps, weight, y_f16 }.dispatch(caps),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", &w),
            if y_f16 {
                CaseBuffer::half_output("y", &y, values, 1e-6)
            } else {
                CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-7 })
            },
        ],
    )
}
