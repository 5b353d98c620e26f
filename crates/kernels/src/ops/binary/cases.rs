//! Cases of `binary`.

use super::{Binary, Function, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in Function::ALL {
        for (k, ldx, ldy, n_col) in [
            (10, 10, 10, 5),
            (1, 1, 1, 1),
            (65, 68, 72, 3),
            (128, 0, 128, 4),
            (0, 4, 4, 2),
            (16, 16, 16, 300),
        ] {
            let x = random_values(1, (ldx * n_col).max(k).max(4) as usize);
            let y = random_values(2, (ldy * n_col).max(4) as usize);
            let mut values = y.clone();
            for c in 0..n_col as usize {
                let y = &mut values[c * ldy as usize..][..k as usize];
                reference::binary(f, &x[c * ldx as usize..][..k as usize], y);
            }
            out.push(Case::new(
                format!("{} k{k} ldx{ldx} ldy{ldy} n{n_col}", f.word()),
                move |_| Binary { f, k, ldx, ldy, n_col }.dispatch(),
                vec![
                    CaseBuffer::input("x", &x),
                    CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-7 }),
                ],
            ));
        }
    }
    out
}
