//! Cases of `top_k`.

use ggml_format::GgmlType;

use super::{TopK, reference};
use crate::case::{Case, CaseBuffer};
use crate::data::{Data, Output, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let ne = p.list::<4>("ne")?;
    let a = Tensor::new(p.ty("type")?, ne);
    let y = Tensor::new(GgmlType::I32, [p.num("k")?, ne[1], ne[2], ne[3]]);
    Ok(case(p.to_string(), TopK { a, y }, p.flag("ties")?))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let mut ne = random_ne(rng);
    if rng.below(2) == 0 {
        ne = [9000 + rng.below(30_000), 1 + rng.below(2), 1, 1 + rng.below(2)];
    }
    let k = 1 + rng.below(ne[0]);
    let a = random_tensor(rng, GgmlType::F32, ne);
    let y = random_tensor(rng, GgmlType::I32, [k, ne[1], ne[2], ne[3]]);
    let ties = rng.below(2) == 0;
    case(format!("random {ties} {a:?} {y:?}"), TopK { a, y }, ties)
}

/// With `ties`, most values have duplicates.
fn case(label: String, call: TopK, ties: bool) -> Case {
    let mut rng = Rng::new(1);
    let values: Vec<f32> = (0..call.a.n_alloc)
        .map(|_| match rng.below(50) {
            0 => rng.pick(&[0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY]),
            _ if ties => rng.range(-8.0, 8.0).round(),
            _ => rng.range(-20.0, 20.0),
        })
        .collect();
    let data = Data::of(call.a, &values, 0);
    let values: Vec<f64> = each(&call.a).map(|c| data.at(c)).collect();
    let want: Vec<f64> = values
        .chunks(call.a.ne[0] as usize)
        .flat_map(|row| reference::top_k(row, call.y.ne[0] as usize))
        .map(f64::from)
        .collect();
    let mut buffers = vec![data.input("a")];
    for (name, n) in ["hist", "counts"].into_iter().zip(call.scratch_bytes()).filter(|(_, n)| *n > 0) {
        buffers.push(CaseBuffer::scratch(name, n));
    }
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &want, 0.0)
}
