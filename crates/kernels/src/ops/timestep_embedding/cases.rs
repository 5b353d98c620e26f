//! Cases of `timestep_embedding`.

use ggml_format::GgmlType;

use super::{TimestepEmbedding, reference};
use crate::case::Case;
use crate::data::{Data, Output, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let a = Tensor::new(p.ty("type")?, p.list("ne_a")?);
    let y = Tensor::new(a.ty, [p.num("dim")?, a.ne[0], 1, 1]);
    Ok(case(p.to_string(), TimestepEmbedding { a, y, max_period: p.num("max_period")? }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let (n, dim) = (1 + rng.below(9), 1 + rng.below(70));
    let a = random_tensor(rng, GgmlType::F32, [n, 1, 1, 1]);
    let y = random_tensor(rng, GgmlType::F32, [dim, n, 1, 1]);
    let call = TimestepEmbedding { a, y, max_period: rng.range(100.0, 20_000.0) };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: TimestepEmbedding) -> Case {
    let a = Data::random(call.a, 1, -1.0, 1.0);
    let values = reference::timestep_embedding(&call, &a);
    value_case(label, move |caps| call.dispatch(caps), vec![a.input("a")], Output::New(call.y), &values, 1e-7)
}
