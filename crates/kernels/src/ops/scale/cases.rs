//! Cases of `scale`.

use super::{Scale, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    [
        (10, 10, 100, 2.0, 0.0),
        (10, 12, 7, -0.5, 1.0),
        (1, 1, 1, 3.0, -1.0),
        (0, 4, 3, 2.0, 0.0),
        (1000, 1000, 3, 0.1, 0.0),
    ]
    .into_iter()
    .map(|(k, ldy, n_col, by, bias)| {
        let y = random_values(1, (ldy * n_col).max(4) as usize);
        let mut values = y.clone();
        for c in 0..n_col as usize {
            reference::scale(&mut values[c * ldy as usize..][..k as usize], by, bias);
        }
        Case::new(
            format!("k{k} ldy{ldy} n{n_col}"),
            move |_| Scale { k, ldy, n_col, by, bias }.dispatch(),
            vec![CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-7 })],
        )
    })
    .collect()
}
