//! Cases of `solve_tri`.

use ggml_format::GgmlType;

use super::{SolveTri, reference};
use crate::case::Case;
use crate::data::{Data, Output, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let ty = p.ty("type")?;
    let (a, b) = (Tensor::new(ty, p.list("ne_lhs")?), Tensor::new(ty, p.list("ne_rhs")?));
    Ok(case(p.to_string(), SolveTri { a, b, y: b }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ne = random_ne(rng);
    let tensor = |rng: &mut Rng, ne| random_tensor(rng, GgmlType::F32, ne);
    let a = tensor(rng, [ne[1], ne[1], ne[2], ne[3]]);
    let (b, y) = (tensor(rng, ne), tensor(rng, ne));
    case(format!("random {a:?} {b:?} {y:?}"), SolveTri { a, b, y })
}

fn case(label: String, call: SolveTri) -> Case {
    // Well-conditioned: entries off the diagonal are small.
    let n = call.a.ne[0].max(1) as f32;
    let mut values: Vec<f32> =
        Data::random(call.a, 1, -1.0 / n, 1.0 / n).values().iter().map(|v| *v as f32).collect();
    for c in each(&call.a).filter(|c| c[0] == c[1]) {
        let v = &mut values[call.a.index(c)];
        *v = 1.0 + v.abs();
    }
    let (a, b) = (Data::of(call.a, &values, 0), Data::random(call.b, 2, -1.0, 1.0));
    let values = reference::solve_tri(&a, &b);
    let buffers = vec![a.input("a"), b.input("b")];
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-10)
}
