//! Cases of `altup`.

use chaski_graph::altup::Kind;

use super::{AltUp, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for kind in Kind::ALL {
        for (rows, n, n_col) in [(4, 64, 3), (4, 1000, 1), (2, 7, 5), (8, 65, 2), (1, 10, 1)] {
            out.push(case(kind, rows, n, n_col));
        }
    }
    out
}

fn case(kind: Kind, rows: u32, n: u32, n_col: u32) -> Case {
    let all = rows * n;
    let n_x = if kind == Kind::Spread { n } else { all };
    let n_b = match kind {
        Kind::Spread | Kind::Merge => all - n,
        _ => n,
    };
    let n_y = if kind == Kind::Merge { n } else { all };
    let ld = [n_x + 1, n_b + 2, rows + 3, n_y + 4];
    let [ldx, ldb, ldr, ldy] = ld.map(|n| n as usize);
    let column = |seed, ld: usize| random_values(seed, ld * n_col as usize);
    let (x, b, router, before) = (column(1, ldx), column(2, ldb), column(3, ldr), column(4, ldy));
    let aux = random_values(5, (rows * rows * rows) as usize);
    let mut values = before.clone();
    for c in 0..n_col as usize {
        let made = reference::altup(
            kind,
            rows as usize,
            &x[c * ldx..][..n_x as usize],
            &b[c * ldb..][..n_b as usize],
            &router[c * ldr..],
            &aux,
        );
        values[c * ldy..][..made.len()].copy_from_slice(&made);
    }
    let call = AltUp { kind, rows, n, ld, n_col };
    let mut buffers = vec![
        CaseBuffer::input("x", &x),
        CaseBuffer::output("y", &before, Expected::F32 { values, max_nmse: 1e-10 }),
    ];
    if kind != Kind::Predict {
        buffers.push(CaseBuffer::input("b", &b));
    }
    if kind.mixes() {
        buffers.extend([CaseBuffer::input("router", &router), CaseBuffer::input("aux", &aux)]);
    }
    Case::new(format!("{kind:?} {rows} rows of {n}, {n_col} columns"), move |_| call.dispatch(), buffers)
}
