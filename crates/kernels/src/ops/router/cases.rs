//! Cases of `router`.

use chaski_graph::{Gate, Routing};

use super::Router;
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::ops::topk_moe::{TopkMoe, cases, reference};
use crate::rng::random_values;

pub(super) fn all() -> Vec<Case> {
    let mut out = Vec::new();
    for gate in Gate::ALL {
        for (n_expert, n_used, k, norm, bias) in
            [(8, 2, 64, None, false), (31, 5, 260, Some(1e-6), true), (128, 8, 2048, Some(1e-6), false)]
        {
            let norm_of_weights = (k > 64).then_some(Routing::CLAMP);
            let n = (n_expert, n_used, 1, 1);
            out.push(case(routing(gate, n, norm_of_weights), k, norm, bias));
        }
    }
    out.push(case(routing(Gate::Sigmoid, (256, 8, 8, 4), Some(Routing::CLAMP)), 512, Some(1e-5), true));
    out
}

fn routing(
    gate: Gate,
    (n_expert, n_used, n_group, n_group_used): (u32, u32, u32, u32),
    norm: Option<f32>,
) -> Routing {
    Routing { gate, n_expert, n_used, n_group, n_group_used, norm, scale: 1.5 }
}

fn case(r: Routing, k: u32, norm: Option<f32>, bias: bool) -> Case {
    let (n, n_used) = (r.n_expert as usize, r.n_used as usize);
    let x = random_values(1, k as usize);
    let weight = random_values(2, k as usize);
    let biases = random_values(3, n);
    let biases = bias.then_some(&biases[..]);
    let input: Vec<f64> = match norm {
        None => x.iter().map(|v| f64::from(*v)).collect(),
        Some(eps) => {
            let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / f64::from(k);
            let scale = 1.0 / (mean + f64::from(eps)).sqrt();
            x.iter().zip(&weight).map(|(v, w)| f64::from(*v) * f64::from(*w) * scale).collect()
        }
    };
    // The logits are spread, as those of the cases of `topk_moe`.
    let power: f64 = input.iter().map(|v| v * v).sum();
    let random = random_values(4, n);
    let row = |v: &f32| {
        let logit = f64::from(cases::spread(*v, &random)) / power;
        input.iter().map(move |x| (x * logit) as f32)
    };
    let w: Vec<f32> = random.iter().flat_map(row).collect();
    let product = |row: &[f32]| row.iter().zip(&input).map(|(w, v)| f64::from(*w) * v).sum::<f64>() as f32;
    let logits: Vec<f32> = w.chunks_exact(k as usize).map(product).collect();
    let weights_at = n_used + 2;
    let mut ids = vec![7u32; weights_at];
    let mut weights = vec![f32::from_bits(7); n_used + 2];
    for (s, (id, w)) in reference::topk_moe(&r, &logits, biases).into_iter().enumerate() {
        (ids[s], weights[s]) = (id, w);
    }
    let before = vec![7u32; ids.len() + weights.len()];
    let choice = TopkMoe { routing: r, bias, ldx: r.n_expert, n_col: 1, weights_at: weights_at as u32 };
    let call = Router { k, norm, choice };
    let expect = Expected::Runs(vec![
        (ids.len(), Expected::Words(ids)),
        (weights.len(), Expected::F32 { values: weights, max_nmse: 1e-9 }),
    ]);
    Case::new(
        format!("{r:?} k{k} norm{norm:?} bias{bias}"),
        move |caps| call.dispatch(caps),
        vec![
            CaseBuffer::input("w", &w),
            CaseBuffer::input("x", &x),
            CaseBuffer::input("aux", &weight),
            CaseBuffer::input("bias", biases.unwrap_or(&[0.0; 4])),
            CaseBuffer::output("y", &vec![7.0f32; n], Expected::F32 { values: logits, max_nmse: 1e-10 }),
            CaseBuffer::output("route", &before, expect),
            CaseBuffer::output("arrived", &[0u32], Expected::Words(vec![0])),
        ],
    )
}
