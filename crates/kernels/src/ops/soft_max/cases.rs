//! Cases of `soft_max`.

use super::{SoftMax, reference};
use crate::case::{Case, CaseBuffer, Expected, random_values};

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for scale in [1.0, 0.1] {
        for (k, pad, n_row) in
            [(16, 0, 16), (15, 1, 15), (1024, 0, 4), (1023, 5, 3), (1, 0, 4), (200_001, 0, 1)]
        {
            out.push(case(k, pad, n_row, scale));
        }
    }
    out.push(case(16, 0, 0, 1.0));
    out
}

fn case(k: u32, pad: u32, n_row: u32, scale: f32) -> Case {
    let ld = k + pad;
    let mut x: Vec<f32> = random_values(3, (ld * n_row.max(1)) as usize).iter().map(|v| v * 4.0).collect();
    // Masked values.
    for i in (1..x.len()).step_by(7) {
        x[i] = f32::NEG_INFINITY;
    }
    for r in 0..n_row as usize {
        x[r * ld as usize] = 1.0;
    }
    let y = vec![7.0f32; x.len()];
    let mut values = y.clone();
    for r in 0..n_row as usize {
        let at = r * ld as usize..r * ld as usize + k as usize;
        values[at.clone()].copy_from_slice(&reference::soft_max(&x[at], scale));
    }
    Case::new(
        format!("k{k} ld{ld} n{n_row} scale{scale}"),
        move |caps| SoftMax { k, n_row, ldx: ld, ldy: ld, scale }.dispatch(caps),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-6 }),
        ],
    )
}
