//! Cases of `topk_moe`: ggml's grid, groups of experts, ties.

use chaski_graph::{Gate, Routing};

use super::{TopkMoe, reference};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::rng::random_values;

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    // (experts, used, columns) from the smallest to 288 experts, and beyond.
    for (i, (n_expert, n_used, n_col)) in [
        (8, 4, 22),
        (31, 8, 22),
        (32, 8, 22),
        (40, 8, 22),
        (71, 8, 22),
        (128, 1, 1),
        (128, 128, 1),
        (129, 128, 1),
        (160, 160, 4),
        (256, 8, 22),
        (288, 8, 3),
        (512, 10, 5),
        (1024, 10, 2),
        (1, 1, 3),
        (2, 2, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let ways = [
            (false, false, 1.0),
            (true, false, 1.0),
            (false, true, 2.0),
            (true, true, 2.0),
            (true, false, 2.0),
        ];
        for (j, gate) in Gate::ALL.into_iter().enumerate() {
            // All variants with few experts; larger cases cycle through them, since each is a kernel to compile.
            let turn = |way: &usize| n_expert == 31 || way % 5 == (i + j) % 5;
            for (norm, bias, scale) in (0..5).filter(turn).map(|way| ways[way]) {
                let norm = norm.then_some(Routing::CLAMP);
                let r = Routing { gate, n_expert, n_used, n_group: 1, n_group_used: 1, norm, scale };
                out.push(case(r, bias, n_col, Kind::Random));
            }
        }
    }
    for (n_expert, n_used, n_group, n_group_used) in
        [(256, 8, 8, 4), (64, 6, 8, 1), (160, 6, 8, 3), (12, 3, 12, 5), (512, 9, 64, 2)]
    {
        for (gate, bias) in [(Gate::Sigmoid, true), (Gate::Softmax, false)] {
            let norm = Some(Routing::CLAMP);
            let r = Routing { gate, n_expert, n_used, n_group, n_group_used, norm, scale: 2.5 };
            out.push(case(r, bias, 9, Kind::Random));
        }
    }
    for gate in Gate::ALL {
        let plain =
            Routing { gate, n_expert: 100, n_used: 7, n_group: 1, n_group_used: 1, norm: None, scale: 1.0 };
        out.push(case(plain, false, 4, Kind::Ties));
        out.push(case(Routing { n_group: 10, n_group_used: 3, ..plain }, false, 4, Kind::Ties));
    }
    // Sums below the clamp, and scores that are all near 0.
    for gate in Gate::ALL {
        let norm = Some(Routing::CLAMP);
        let tiny = Routing { gate, n_expert: 16, n_used: 3, n_group: 1, n_group_used: 1, norm, scale: 1.0 };
        out.push(case(tiny, false, 3, Kind::Low));
    }
    out
}

/// Distribution of the logits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Distinct, and far enough apart that f32 and f64 agree on the order.
    Random,
    /// Few different values.
    Ties,
    /// All far below 0.
    Low,
}

/// A value by its rank among others, which is maximally spread.
pub(crate) fn spread(v: f32, among: &[f32]) -> f32 {
    let rank = among.iter().filter(|o| **o < v).count();
    (rank as f32 + 0.25 * v.clamp(-1.0, 1.0)) / among.len() as f32 * 8.0 - 4.0
}

/// Smallest relative difference of two scores whose order matters.
fn least_gap(r: &Routing, logits: &[f32], bias: Option<&[f32]>) -> f64 {
    let mut s = reference::scores(r, logits, bias);
    s.retain(|v| v.is_finite());
    s.sort_by(|a, b| b.total_cmp(a));
    s.windows(2)
        .take(r.n_used as usize)
        .map(|w| (w[0] - w[1]) / w[0].abs().max(w[1].abs()).max(1e-30))
        .fold(1.0, f64::min)
}

fn case(r: Routing, bias: bool, n_col: u32, kind: Kind) -> Case {
    let (n, k) = (r.n_expert as usize, r.n_used as usize);
    let ldx = n + 3;
    let biases = random_values(2, n);
    let biases = bias.then_some(&biases[..]);
    let mut x = vec![f32::NAN; ldx * (n_col as usize).max(1)];
    for (c, col) in x.chunks_exact_mut(ldx).enumerate().take(n_col as usize) {
        let (logits, _) = col.split_at_mut(n);
        let fill = |logits: &mut [f32], seed: u64| {
            let random = random_values(seed, n);
            for (l, v) in logits.iter_mut().zip(&random) {
                *l = match kind {
                    Kind::Random => spread(*v, &random),
                    Kind::Ties => (v * 3.0).round(),
                    Kind::Low => v.clamp(-1.0, 1.0) - 30.0,
                };
            }
        };
        let mut seed = 1000 * c as u64 + 17;
        fill(logits, seed);
        while kind == Kind::Random && least_gap(&r, logits, biases) < 3e-6 {
            seed += 1;
            fill(logits, seed);
        }
    }
    let before = vec![7u32; 2 * k * (n_col as usize).max(1) + 4];
    let weights_at = k * n_col as usize + 2;
    let mut ids = vec![7u32; weights_at];
    let mut weights = vec![f32::from_bits(7); before.len() - weights_at];
    for c in 0..n_col as usize {
        for (s, (id, w)) in reference::topk_moe(&r, &x[c * ldx..][..n], biases).into_iter().enumerate() {
            ids[c * k + s] = id;
            weights[c * k + s] = w;
        }
    }
    let call = TopkMoe { routing: r, bias, ldx: ldx as u32, n_col, weights_at: weights_at as u32 };
    let expect = Expected::Runs(vec![
        (ids.len(), Expected::Words(ids)),
        (weights.len(), Expected::F32 { values: weights, max_nmse: 1e-10 }),
    ]);
    Case::new(
        format!("{r:?} bias{bias} n{n_col} {kind:?}"),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", biases.unwrap_or(&[0.0; 4])),
            CaseBuffer::output("route", &before, expect),
        ],
    )
}
