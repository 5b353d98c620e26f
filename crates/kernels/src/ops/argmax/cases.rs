//! Cases of `argmax`.

use ggml_format::GgmlType;

use super::{Argmax, ArgmaxRows, CHUNK};
use crate::case::{Case, CaseBuffer};
use crate::compare::Expected;
use crate::data::{Data, Output, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::{Rng, random_values};
use crate::step::cases::{N_SEQ, Picked};
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
    // Integers of both signs, so that some are equal.
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
        for n_row in [1, 2, 7, 64] {
            if n_row < 64 || k < 6000 {
                out.extend(choices(k, n_row));
            }
        }
    }
    out
}

/// The next tokens from `n_row` rows of `k` logits.
fn choices(k: u32, n_row: usize) -> [Case; 2] {
    let Picked { choice, words: before } = Picked::new(n_row, 64, 60);
    let ld = k.next_multiple_of(8);
    let call = Argmax { k, ld, n_row: n_row as u32, choice };
    let mut x = random_values(1, ld as usize * n_row);
    if k > 20 {
        for row in x.chunks_mut(ld as usize) {
            // The first of equal values wins. Masked values never do.
            let top = 100.0;
            row[k as usize / 2] = top;
            row[k as usize - 1] = top;
            row[0] = f32::NEG_INFINITY;
        }
    }
    let (mut parts, mut tokens) = (Vec::new(), Vec::new());
    for row in x.chunks(ld as usize).map(|row| &row[..k as usize]) {
        for (i, chunk) in row.chunks(CHUNK as usize).enumerate() {
            let (at, v) = best(chunk);
            parts.extend([v.to_bits(), (i * CHUNK as usize + at) as u32]);
        }
        tokens.push(best(row).0 as u32);
    }
    let first = Case::new(
        format!("chunk k{k} rows{n_row}"),
        move |caps| call.chunk(caps),
        vec![
            CaseBuffer::input("x", &x),
            CaseBuffer::output("y", &vec![0u32; parts.len()], Expected::Words(parts.clone())),
        ],
    );
    let ring_before = vec![9u32; (64 * N_SEQ) as usize];
    let (mut after, mut ring) = (before.clone(), ring_before.clone());
    choice.advance(&mut after, &mut ring, &tokens);
    let last = Case::new(
        format!("final k{k} rows{n_row}"),
        move |caps| call.join(caps),
        vec![
            CaseBuffer::input("x", &parts),
            CaseBuffer::output("step", &before, Expected::Words(after)),
            CaseBuffer::output("ring", &ring_before, Expected::Words(ring)),
        ],
    );
    [first, last]
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
