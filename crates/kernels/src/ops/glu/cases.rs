//! Cases of `glu`.

use chaski_graph::Act;

use super::{Glu, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for act in Act::ALL {
        for (f, up, ldx, ldy, n_col) in [
            (128, 128, 256, 128, 8),
            (5, 5, 10, 5, 7),
            (172, 172, 344, 172, 3),
            (7, 9, 20, 8, 2),
            (0, 0, 4, 4, 1),
        ] {
            let x: Vec<f32> = random_values(1, (ldx * n_col) as usize).iter().map(|v| v * 5.0).collect();
            let y = vec![7.0f32; (ldy * n_col) as usize];
            let mut values = y.clone();
            for c in 0..n_col as usize {
                let col = &x[c * ldx as usize..];
                let r = reference::glu(act, &col[..f as usize], &col[up as usize..][..f as usize]);
                values[c * ldy as usize..][..f as usize].copy_from_slice(&r);
            }
            for y_f16 in [false, true] {
                if y_f16 && [f, up, ldx, ldy].iter().any(|n| n % 4 != 0) {
                    continue;
                }
                let values = values.clone();
                let y = if y_f16 {
                    CaseBuffer::half_output("y", &y, values, 1e-6)
                } else {
                    CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-7 })
                };
                out.push(Case::new(
                    format!("{} f{f} up{up} ldx{ldx} ldy{ldy} n{n_col} f16{y_f16}", act.word()),
                    move |_| Glu { act, f, up, ldx, ldy, n_col, y_f16 }.dispatch(),
                    vec![CaseBuffer::input("x", &x), y],
                ));
            }
        }
    }
    out
}
