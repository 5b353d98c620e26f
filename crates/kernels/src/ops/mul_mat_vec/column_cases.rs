//! Cases of products of a few columns, some of which may be absent: by teams, and by subgroups (`few.rs`).

use super::cases::{COLUMNS, ROWS, TELLING, limit, rows_of, seen};
use super::{ActivationPrecision, Epilogue, FewColumns, MulMatVec, few, reference};
use crate::affine::{Affine, AffineBy};
use crate::caps::Caps;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::{FORMATS, Format, Matrix};
use crate::ops::get_rows::cases::table;
use crate::rng::random_values;
use crate::step;
use crate::tuning::MatVecTune;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for act in [ActivationPrecision::F32, ActivationPrecision::I16, ActivationPrecision::I8] {
        for f in FORMATS.iter().filter(|f| act == ActivationPrecision::F32 || f.run > 0) {
            let tune = |fill, team| Some(MatVecTune { fill, team, act, doubled: false });
            out.push(case(f, 33, 512, (8, 8), Epilogue::Add, ROWS, act, None, by_teams));
            if act == ActivationPrecision::I8 {
                continue;
            }
            out.push(case(f, 10, 256, (7, 5), Epilogue::Store, None, act, None, by_teams));
            if TELLING.contains(&f.name) {
                out.push(case(f, 5, 256, (8, 7), Epilogue::Store, COLUMNS, act, None, by_teams));
                out.push(case(f, 33, 512, (3, 2), Epilogue::Add, COLUMNS, act, None, by_teams));
            }
            out.push(case(f, 9, 2048, (4, 3), Epilogue::Add, None, act, tune(64, 64), by_teams));
            out.push(case(f, 64, 512, (2, 1), Epilogue::Store, ROWS, act, tune(64, 512), by_teams));
            if act == ActivationPrecision::F32 && f.is_plain() {
                for k in [65, 588, 3] {
                    out.push(case(f, 5, k, (8, 6), Epilogue::Store, ROWS, act, None, by_teams));
                }
            }
        }
    }
    out
}

pub(super) fn few_cases() -> Vec<Case> {
    let by = |call: &MulMatVec, caps: &Caps| {
        let what = "subgroups of one size, and x in whole numbers";
        few::columns(call, caps).unwrap_or(Err(DispatchError::Lacks { op: few::KERNELS.name, what }))
    };
    let mut out = Vec::new();
    for act in [ActivationPrecision::I16, ActivationPrecision::I8] {
        for f in FORMATS.iter().filter(|f| f.run > 0) {
            let case = |m, k, n, epilogue, affine| case(f, m, k, n, epilogue, affine, act, None, by);
            // Rows that end in the midst of a chunk; columns of two steps; rows of the last subgroup that do not exist.
            out.push(case(33, 2304, (4, 4), Epilogue::Add, ROWS));
            out.push(case(10, 256, (7, 5), Epilogue::Store, None));
            if TELLING.contains(&f.name) {
                out.push(case(5, 256, (8, 7), Epilogue::Store, COLUMNS));
                out.push(case(64, 512, (2, 1), Epilogue::Store, ROWS));
                out.push(case(17, 1024, (4, 3), Epilogue::Add, None));
                out.push(case(33, 512, (4, 4), Epilogue::Add, COLUMNS));
                out.push(case(16_397, 256, (4, 2), Epilogue::Store, None));
                out.push(case(16_384, 256, (4, 4), Epilogue::Add, None));
            }
        }
    }
    out
}

fn by_teams(call: &MulMatVec, caps: &Caps) -> Result<Dispatch, DispatchError> {
    call.dispatch(caps)
}

/// `n`: maximum number of columns, and actual number.
fn case(
    f: &'static Format,
    m: u32,
    k: u32,
    (max_col, n_col): (u32, u32),
    epilogue: Epilogue,
    affine: Option<AffineBy>,
    act: ActivationPrecision,
    tune: Option<MatVecTune>,
    by: fn(&MulMatVec, &Caps) -> Result<Dispatch, DispatchError>,
) -> Case {
    let (mu, ku) = (m as usize, k as usize);
    let blocks = table(f, mu, ku, 3);
    let rows = rows_of(f, &blocks, ku, mu);
    let (ldx, ldy, y0) = (k.next_multiple_of(8) + 8, m + 5, 2usize);
    let mut x = random_values(5, (ldx * max_col) as usize);
    x.chunks_exact_mut(ldx as usize).for_each(|c| c[ku..].fill(f32::NAN));
    let y = random_values(6, (ldy * max_col) as usize + y0);
    let aux = random_values(7, 8 + (2 * mu.max(max_col as usize)).next_multiple_of(4));
    let mut values = y.clone();
    for (c, column) in x.chunks_exact(ldx as usize).enumerate().take(n_col as usize) {
        let seen = seen(f, act, &column[..ku], None);
        let made = reference::mul_mat_vec(mu, |i| rows[i].clone(), &seen);
        for (r, mut v) in made.into_iter().enumerate() {
            if let Some(by) = affine {
                let pair = if by == AffineBy::Row { r } else { c };
                v = v * aux[5 + 2 * pair] + aux[6 + 2 * pair];
            }
            let at = &mut values[y0 + c * ldy as usize + r];
            *at = if matches!(epilogue, Epilogue::Add) { *at + v } else { v };
        }
    }
    let mut words = vec![0u32; step::HEADER];
    words[step::N_COL] = n_col;
    let w = Matrix { format: f, n_row: m, n_col: k };
    let call = MulMatVec {
        columns: Some(FewColumns { n_col: max_col, ldx, ldy }),
        affine: affine.map(|by| Affine { at: 5, by }),
        y0: y0 as u32,
        act: Some(act),
        tune,
        ..MulMatVec::new(w, epilogue)
    };
    Case::new(
        format!(
            "{} {m}x{k} {n_col} of {max_col} columns {epilogue:?} affine {affine:?} {act:?} {tune:?}",
            f.name
        ),
        move |caps| by(&call, caps),
        vec![
            CaseBuffer::input("w", &w.layout().pack_all(f, k, &blocks)),
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", &aux),
            CaseBuffer::input("step", &words),
            CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: limit(f) }),
        ],
    )
    .work(2 * u64::from(m) * u64::from(n_col) * u64::from(k))
}
