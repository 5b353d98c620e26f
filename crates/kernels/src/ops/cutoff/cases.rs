//! Cases of `cutoff`.

use super::{Cutoff, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (k, n_row) in [(1, 2), (8, 3), (96, 5), (513, 4), (16384, 2)] {
        for by in [0.0, 0.5, 1.644_853_6] {
            out.push(case(k, n_row, by));
        }
    }
    out
}

fn case(k: u32, n_row: u32, by: f32) -> Case {
    let (ldx, ldy) = (k as usize + 3, k as usize + 1);
    let x = random_values(1, ldx * n_row as usize);
    let before = random_values(2, ldy * n_row as usize);
    let mut y = before.clone();
    for r in 0..n_row as usize {
        y[r * ldy..][..k as usize].copy_from_slice(&reference::cutoff(&x[r * ldx..][..k as usize], by));
    }
    let call = Cutoff { k, n_row, ldx: ldx as u32, ldy: ldy as u32, by };
    Case::new(
        format!("{n_row} rows of {k} by {by}"),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::output("y", &before, Expected::F32 { values: y, max_nmse: 1e-10 }),
        ],
    )
}
