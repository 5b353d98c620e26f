//! Cases of `moe_reduce`: ggml's grid (63 and 2048 values, 2 to 16 slots).

use super::{MoeReduce, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::ops::expert_lists::cases::{random_route, sorted_route};
use crate::rng::random_values;
use crate::route::Route;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for m in [63, 2048] {
        for (n_used, n_col) in [(2, 22), (4, 5), (8, 1), (16, 3), (1, 4), (6, 0)] {
            for sorted in [false, true] {
                for add in [false, true] {
                    out.push(case(m, n_used, n_col, sorted, add));
                }
            }
        }
    }
    out
}

fn case(m: u32, n_used: u32, n_col: u32, sorted: bool, add: bool) -> Case {
    let route = Route { n_expert: 16, n_used, n_col: n_col + 2, tile: 4 };
    let ids = random_route(&route, n_col, true);
    let weights = random_values(3, ids.len());
    let words = sorted_route(&route, &ids, &weights, n_col);
    let (ldx, ldy, mu) = (m + 1, m + 5, m as usize);
    let x = random_values(1, ldx as usize * ids.len().max(1));
    let y = random_values(2, ldy as usize * n_col.max(1) as usize);
    let mut values = y.clone();
    let used = n_used as usize;
    for c in 0..n_col as usize {
        let row = |p: usize| {
            let row = if sorted { words[route.places_at() as usize + p] as usize } else { p };
            &x[row * ldx as usize..][..mu]
        };
        let rows: Vec<&[f32]> = (c * used..(c + 1) * used).map(row).collect();
        let sum = reference::moe_reduce(&rows, &weights[c * used..][..used]);
        for (v, s) in values[c * ldy as usize..].iter_mut().zip(&sum) {
            *v = if add { *v + s } else { *s };
        }
    }
    let call = MoeReduce { route, m, ldx, ldy, n_col, sorted, add };
    Case::new(
        format!("m{m} used{n_used} n{n_col} sorted{sorted} add{add}"),
        move |_| call.dispatch(),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::input("route", &words),
            CaseBuffer::output("y", &y, Expected::F32 { values, max_nmse: 1e-11 }),
        ],
    )
}
