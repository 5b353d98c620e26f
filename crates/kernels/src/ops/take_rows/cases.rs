//! Cases of `take_rows`.

use super::TakeRows;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;
use crate::step;

pub(super) fn cases() -> Vec<Case> {
    [(10, 10, 12, 100), (8, 16, 8, 7), (1, 1, 1, 1), (0, 4, 4, 3), (1000, 1000, 1000, 3)]
        .into_iter()
        .map(case)
        .collect()
}

/// Every third column has a token, every third the last chosen token, and the others have rows in reverse order.
fn case((k, ldx, ldy, n_col): (u32, u32, u32, u32)) -> Case {
    let x = random_values(1, (ldx * n_col) as usize);
    let y = random_values(2, (ldy * n_col) as usize);
    let mut words = vec![0u32; step::HEADER + step::COLUMN * n_col as usize];
    let mut after = y.clone();
    for column in 0..n_col {
        let source = match column % 3 {
            0 => step::FIRST_ROW + n_col - 1 - column,
            1 => step::TOKEN,
            _ => step::CHOSEN,
        };
        words[step::HEADER + step::COLUMN * column as usize + step::SOURCE] = source;
        if let Some(row) = source.checked_sub(step::FIRST_ROW) {
            let (from, to) = ((row * ldx) as usize, (column * ldy) as usize);
            after[to..to + k as usize].copy_from_slice(&x[from..from + k as usize]);
        }
    }
    let call = TakeRows { k, ldx, ldy, n_col };
    let after = after.into_iter().map(f32::to_bits).collect();
    Case::new(
        format!("k{k} ldx{ldx} ldy{ldy} n{n_col}"),
        move |_| call.dispatch(),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::input("step", &words),
            CaseBuffer::output("y", &y, Expected::Words(after)),
        ],
    )
}
