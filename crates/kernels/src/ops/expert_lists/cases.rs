//! Cases of `expert_lists`.

use super::{ExpertLists, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::ops::mul_mat_vec::choose;
use crate::rng::random_values;
use crate::route::Route;
use crate::step;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (n_expert, n_used, max_col, tile) in [
        (8, 2, 70, 64),
        (4, 4, 33, 32),
        (128, 8, 64, 32),
        (1024, 10, 20, 16),
        (1, 1, 5, 64),
        (64, 1, 300, 128),
    ] {
        for n_col in [max_col, max_col / 2, 1, 0] {
            for even in [true, false] {
                out.push(case(Route { n_expert, n_used, n_col: max_col, tile }, n_col, even));
            }
        }
    }
    out
}

/// Experts of `n_col` columns; unless `even`, most columns choose the same few.
pub(crate) fn random_route(route: &Route, n_col: u32, even: bool) -> Vec<u32> {
    let column = |c: u32| {
        let few = !even && random_values(u64::from(c) + 900, 1)[0] < 0.5;
        choose(if few { 5 } else { u64::from(c) + 50 }, route.n_expert, route.n_used)
    };
    (0..n_col).flat_map(column).collect()
}

/// A route buffer with lists: ids and weights of `n_col` columns, tiles and pairs.
pub(crate) fn sorted_route(route: &Route, ids: &[u32], weights: &[f32], n_col: u32) -> Vec<u32> {
    let mut words = vec![0xffff_ffffu32; route.n_word(true) as usize];
    words[..ids.len()].copy_from_slice(ids);
    for (word, weight) in words[route.weights_at() as usize..].iter_mut().zip(weights) {
        *word = weight.to_bits();
    }
    reference::expert_lists(route, ids, n_col, &mut words);
    words
}

fn case(route: Route, n_col: u32, even: bool) -> Case {
    let mut before = vec![0xffff_ffffu32; route.n_word(true) as usize];
    let ids = random_route(&route, n_col, even);
    before[..ids.len()].copy_from_slice(&ids);
    let expect = sorted_route(&route, &ids, &[], n_col);
    let mut words = vec![0u32; step::HEADER];
    words[step::N_COL] = n_col;
    Case::new(
        format!("{route:?} n{n_col} even{even}"),
        move |caps| ExpertLists { route }.dispatch(caps),
        vec![
            CaseBuffer::input("step", &words),
            CaseBuffer::output("route", &before, Expected::Words(expect)),
        ],
    )
}
