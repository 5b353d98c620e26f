//! Cases of `argmax`.

use ggml_format::GgmlType;

use super::{Argmax, ArgmaxRows, CHUNK};
use crate::case::{Case, CaseBuffer, Expected, Rng, random_values};
use crate::data::{Data, Output, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::step;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let a = Tensor::new(p.ty("type")?, p.list("ne")?);
    Ok(rows(p.to_string(), a, Tensor::new(GgmlType::I32, [a.ne[1], a.ne[2], a.ne[3], 1])))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ne = random_ne(rng);
    let a = random_tensor(rng, GgmlType::F32, ne);
    let y = random_tensor(rng, GgmlType::I32, [ne[1], ne[2], ne[3], 1]);
    rows(format!("random {a:?} {y:?}"), a, y)
}

fn rows(label: String, a: Tensor, y: Tensor) -> Case {
    // Whole numbers, so that some are equal, of both signs.
    let mut values: Vec<f32> =
        random_values(5, a.n_alloc as usize).iter().map(|v| (v * 50.0).round()).collect();
    values.iter_mut().step_by(9).for_each(|v| *v = f32::NEG_INFINITY);
    let data = Data::of(a, &values, 0);
    let values: Vec<f32> = each(&a).map(|c| data.at(c) as f32).collect();
    let best: Vec<f64> = values.chunks(a.ne[0] as usize).map(|row| best(row).0 as f64).collect();
    let call = ArgmaxRows { a, y };
    value_case(label, move |caps| call.dispatch(caps), vec![data.input("a")], Output::New(y), &best, 0.0)
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for k in [1, 10, 32, 100, 2000, 2048, 2049, 5438, 32_000] {
        let call = Argmax { k, ring: 64 };
        let mut x = random_values(1, k as usize);
        if k > 20 {
            // Equals: the first one wins. Masked values never do.
            let top = 100.0;
            x[k as usize / 2] = top;
            x[k as usize - 1] = top;
            x[0] = f32::NEG_INFINITY;
        }
        let mut parts = Vec::new();
        for (i, chunk) in x.chunks(CHUNK as usize).enumerate() {
            let (at, v) = best(chunk);
            parts.extend([v.to_bits(), (i * CHUNK as usize + at) as u32]);
        }
        out.push(Case::new(
            format!("chunk k{k}"),
            move |caps| call.chunk(caps),
            vec![
                CaseBuffer::input("x", &x),
                CaseBuffer::output("y", &vec![0u32; parts.len()], Expected::Words(parts.clone())),
            ],
        ));
        let mut before: Vec<u32> = (0..step::HEADER as u32 + 12).collect();
        before[step::PICK] = 2;
        let mut after = before.clone();
        let token = best(&x).0 as u32;
        let mut ring = vec![9u32; 64];
        step::advance(&mut after, &mut ring, token);
        out.push(Case::new(
            format!("final k{k}"),
            move |caps| call.join(caps),
            vec![
                CaseBuffer::input("x", &parts),
                CaseBuffer::output("step", &before, Expected::Words(after)),
                CaseBuffer::output("ring", &vec![9u32; 64], Expected::Words(ring)),
            ],
        ));
    }
    out
}

/// Index and value of the first largest value.
fn best(x: &[f32]) -> (usize, f32) {
    let mut at = 0;
    for (i, v) in x.iter().enumerate() {
        if *v > x[at] {
            at = i;
        }
    }
    (at, x[at])
}
