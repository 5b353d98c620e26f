//! Cases of `mul_mat_join`; those of `mul_mat` with ranges of K run both kernels.

use super::{MulMatJoin, reference};
use crate::affine::{Affine, AffineBy};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::ops::mul_mat_vec::cases::{COLUMNS, ROWS};
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (n_row, n_col, splits) in [(1, 1, 2), (5, 3, 1), (300, 4, 7), (128, 70, 16)] {
        for (add, affine) in [(false, None), (true, None), (false, ROWS), (true, ROWS), (true, COLUMNS)] {
            out.push(case(n_row, n_col, splits, add, affine));
        }
    }
    out
}

fn case(n_row: u32, n_col: u32, splits: u32, add: bool, affine: Option<AffineBy>) -> Case {
    let (ldx, ldy, y0) = (n_row + 3, n_row + 7, 2);
    let part = ldx * n_col + 5;
    let x = random_values(1, (part * splits) as usize);
    let aux = random_values(2, 3 + 2 * n_row.max(n_col) as usize);
    let before = random_values(3, (ldy * n_col) as usize);
    let mut values = before.clone();
    for c in 0..n_col as usize {
        for r in 0..n_row as usize {
            let mut v = reference::sum(&x, splits as usize, part as usize, c * ldx as usize + r);
            if let Some(by) = affine {
                let pair = if by == AffineBy::Row { r } else { c };
                v = v * aux[3 + 2 * pair] + aux[4 + 2 * pair];
            }
            let at = &mut values[c * ldy as usize + y0 as usize + r];
            *at = if add { *at + v } else { v };
        }
    }
    let affine = affine.map(|by| Affine { at: 3, by });
    let call = MulMatJoin { n_row, n_col, splits, part, ldx, ldy, y0, add, affine };
    Case::new(
        format!("{n_row}x{n_col} of {splits} add{add} affine {affine:?}"),
        move |_| call.dispatch(),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", &aux),
            CaseBuffer::output("y", &before, Expected::F32 { values, max_nmse: 1e-12 }),
        ],
    )
}
