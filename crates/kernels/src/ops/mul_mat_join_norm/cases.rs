//! Cases of `mul_mat_join_norm`.

use super::MulMatJoinNorm;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::ops::mul_mat_join::{self, MulMatJoin};
use crate::ops::rms_norm::{self, RmsNorm};
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (k, n_col, splits) in [(4, 1, 2), (64, 3, 3), (516, 7, 2), (2048, 5, 4), (4096, 70, 8)] {
        for (add, y_f16, weight) in [(false, false, true), (true, false, false), (true, true, true)] {
            out.push(case(k, n_col, splits, add, y_f16, weight));
        }
    }
    out
}

fn case(k: u32, n_col: u32, splits: u32, add: bool, y_f16: bool, weight: bool) -> Case {
    let (ldp, ld, eps) = (k + 4, k + 8, 1e-5);
    let part = ldp * n_col + 12;
    let parts = random_values(1, (part * splits) as usize);
    let weights = random_values(2, k as usize);
    let before = random_values(3, (ld * n_col) as usize);
    let y = vec![7.0f32; before.len()];
    let (mut sums, mut values) = (before.clone(), y.clone());
    for c in 0..n_col as usize {
        let at = c * ld as usize..c * ld as usize + k as usize;
        for (r, x) in sums[at.clone()].iter_mut().enumerate() {
            let r =
                mul_mat_join::reference::sum(&parts, splits as usize, part as usize, c * ldp as usize + r);
            *x = if add { *x + r } else { r };
        }
        let row = rms_norm::reference::rms_norm(&sums[at.clone()], weight.then_some(&weights), eps);
        values[at].copy_from_slice(&row);
    }
    let call = MulMatJoinNorm {
        join: MulMatJoin { n_row: k, n_col, splits, part, ldx: ldp, ldy: ld, y0: 0, add, affine: None },
        norm: RmsNorm { k, n_row: n_col, ldx: ld, ldy: ld, eps, weight, y_f16 },
    };
    Case::new(
        format!("{k}x{n_col} of {splits} add{add} f16{y_f16} w{weight}"),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("parts", &parts),
            CaseBuffer::input("aux", &weights),
            CaseBuffer::output("x", &before, Expected::F32 { values: sums, max_nmse: 1e-12 }),
            if y_f16 {
                CaseBuffer::half_output("y", &y, values, 1e-6)
            } else {
                CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-7 })
            },
        ],
    )
}
