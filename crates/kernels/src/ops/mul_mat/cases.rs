//! Cases of `mul_mat`.

use super::MulMat;
use crate::case::{Case, CaseBuffer, Expected, random_values};
use crate::format::{FORMATS, Format, Matrix};
use crate::ops::get_rows;
use crate::ops::get_rows::cases::table;
use crate::ops::mul_mat_vec::reference::dot;
use crate::step;

/// Cases that only cooperative matrices take; elsewhere the register tiles do them, which is as good.
pub(super) fn coop_cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        for side in [64, 128] {
            for (m, n, k) in [(16, 1, 256), (64, 64, 256), (51, 33, 512), (200, 130, 256), (70, 40, 64)] {
                if k % f.block as u32 == 0 {
                    out.push(case_of(f, m, n, k, false, false, true, Some(side)));
                }
            }
            out.push(case_of(f, 80, 150, 512, true, true, true, Some(side)));
        }
    }
    out
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for f in FORMATS {
        for (m, n, k) in
            [(16, 1, 256), (16, 9, 256), (65, 70, 512), (1, 2, 1024), (64, 64, 256), (0, 3, 256), (3, 0, 256)]
        {
            out.push(case(f, m, n, k, false, false, false));
        }
        out.push(case(f, 67, 65, 256, true, true, false));
        out.push(case(f, 33, 40, 512, false, true, true));
        if f.is_plain() {
            for (m, n, k) in [(32, 7, 65), (64, 32, 588), (9, 5, 3), (31, 33, 80)] {
                out.push(case(f, m, n, k, false, false, false));
            }
        }
    }
    out
}

fn case(f: &'static Format, m: u32, n: u32, k: u32, add: bool, affine: bool, f16_tiles: bool) -> Case {
    case_of(f, m, n, k, add, affine, f16_tiles, None)
}

fn case_of(
    f: &'static Format,
    m: u32,
    n: u32,
    k: u32,
    add: bool,
    affine: bool,
    f16_tiles: bool,
    side: Option<u32>,
) -> Case {
    let (mu, nu, ku) = (m as usize, n as usize, k as usize);
    let blocks = table(f, mu, ku, 3);
    let (ldx, ldy, y0) = (k.next_multiple_of(4) + 4, m + 3, 2);
    let mut x = random_values(5, ldx as usize * nu.max(1));
    for c in x.chunks_exact_mut(ldx as usize) {
        c[ku..].fill(f32::NAN);
    }
    let y = random_values(6, ldy as usize * nu.max(1));
    let mut aux = vec![0.0; 5];
    aux.extend(random_values(7, 2 * mu.max(1)));
    let mut values = y.clone();
    for r in 0..mu {
        let row = get_rows::reference::row(f.ty, &blocks, ku, r);
        for c in 0..nu {
            let mut v = dot(&row, &x[c * ldx as usize..][..ku]) as f32;
            if affine {
                v = v * aux[5 + 2 * r] + aux[6 + 2 * r];
            }
            let at = &mut values[c * ldy as usize + y0 + r];
            *at = if add { *at + v } else { v };
        }
    }
    let mut words = vec![0u32; step::HEADER];
    words[step::N_COL] = n;
    let w = Matrix { format: f, n_row: m, n_col: k };
    let call =
        MulMat { w, add, affine: affine.then_some(5), f16_tiles, ldx, ldy, y0: y0 as u32, n_col: n, side };
    Case::new(
        format!("{} {m}x{n}x{k} add{add} affine{affine} f16{f16_tiles} side{side:?}", f.name),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("w", &w.layout().pack_all(f, k, &blocks)),
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", &aux),
            CaseBuffer::input("step", &words),
            CaseBuffer::output(
                "y",
                &y,
                Expected::F32 { values, max_nmse: if f16_tiles { 1e-6 } else { 1e-9 } },
            ),
        ],
    )
    .work(2 * u64::from(m) * u64::from(n) * u64::from(k))
}
