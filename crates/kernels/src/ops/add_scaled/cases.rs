//! Cases of `add_scaled`.

use super::{AddScaled, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    [
        (64, 64, 64, 3, 2.0),
        (1, 1, 3, 1, 0.5),
        (100, 103, 128, 7, -0.125),
        (0, 4, 4, 2, 1.0),
        (16, 16, 16, 2, 0.0),
        (1000, 1000, 1001, 5, 1e3),
    ]
    .into_iter()
    .map(|(k, ldx, ldy, n_col, by)| case(AddScaled { k, ldx, ldy, n_col, by }))
    .collect()
}

fn case(call: AddScaled) -> Case {
    let AddScaled { k, ldx, ldy, n_col, by } = call;
    let x = random_values(1, (ldx * n_col).max(4) as usize);
    let y = random_values(2, (ldy * n_col).max(4) as usize);
    let mut values = y.clone();
    for c in 0..n_col as usize {
        let at = c * ldy as usize..c * ldy as usize + k as usize;
        reference::add_scaled(&mut values[at], &x[c * ldx as usize..][..k as usize], by);
    }
    Case::new(
        format!("k{k} ldx{ldx} ldy{ldy} n{n_col} by{by}"),
        move |_| call.dispatch(),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-12 }),
        ],
    )
}
