//! Cases of `count_equal`.

use ggml_format::GgmlType;

use super::CountEqual;
use crate::case::Case;
use crate::data::{Data, Output, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    // ggml's test compares the argmax of each row.
    let ne: [u32; 4] = p.list("ne")?;
    let a = Tensor::new(GgmlType::I32, [ne[1], ne[2], ne[3], 1]);
    Ok(case(p.to_string(), CountEqual { a, b: a, y: Tensor::new(GgmlType::I64, [1; 4]) }, ne[0]))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ne = random_ne(rng);
    let (a, b) = (random_tensor(rng, GgmlType::I32, ne), random_tensor(rng, GgmlType::I32, ne));
    let call = CountEqual { a, b, y: random_tensor(rng, GgmlType::I64, [1; 4]) };
    case(format!("random {call:?}"), call, 3)
}

/// A case with `n` distinct values.
fn case(label: String, call: CountEqual, n: u32) -> Case {
    let data = |t: Tensor, seed| {
        let mut rng = Rng::new(seed);
        let values: Vec<f32> = (0..t.n_alloc).map(|_| rng.below(n) as f32 - 1.0).collect();
        Data::of(t, &values, seed)
    };
    let (a, b) = (data(call.a, 1), data(call.b, 2));
    let count = each(&call.a).filter(|c| a.at(*c) == b.at(*c)).count();
    let buffers = vec![a.input("a"), b.input("b")];
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &[count as f64], 0.0)
}
