//! Cases of `argsort`.

use ggml_format::GgmlType;

use super::{Argsort, reference};
use crate::case::{Case, CaseBuffer};
use crate::data::{Data, Output, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Empty rows, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let [a, y] = [GgmlType::F32, GgmlType::I32].map(|ty| Tensor::new(ty, [0, 3, 1, 1]));
    vec![case("empty rows".into(), Argsort { descending: false, a, y })]
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let ne = p.list("ne")?;
    let (a, y) = (Tensor::new(p.ty("type")?, ne), Tensor::new(GgmlType::I32, ne));
    Ok(case(p.to_string(), Argsort { descending: p.flag("order")?, a, y }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let mut ne = random_ne(rng);
    if rng.below(2) == 0 {
        ne = [900 + rng.below(9000), 1 + rng.below(3), 1 + rng.below(2), 1];
    }
    let (a, y) = (random_tensor(rng, GgmlType::F32, ne), random_tensor(rng, GgmlType::I32, ne));
    let descending = rng.below(2) == 0;
    case(format!("random {descending} {a:?} {y:?}"), Argsort { descending, a, y })
}

fn case(label: String, call: Argsort) -> Case {
    // Values with duplicates, both zeros and infinities.
    let mut rng = Rng::new(1);
    let values: Vec<f32> = (0..call.a.n_alloc)
        .map(|_| match rng.below(50) {
            0 => rng.pick(&[0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY]),
            1..10 => rng.range(-20.0, 20.0).round(),
            _ => rng.range(-20.0, 20.0),
        })
        .collect();
    let data = Data::of(call.a, &values, 0);
    let values: Vec<f64> = each(&call.a).map(|c| data.at(c)).collect();
    let want: Vec<f64> = values
        .chunks(call.a.ne[0].max(1) as usize)
        .flat_map(|row| reference::argsort(row, call.descending))
        .map(f64::from)
        .collect();
    let mut buffers = vec![data.input("a")];
    let (names, bytes) = call.scratch();
    buffers.extend(names.iter().map(|name| CaseBuffer::scratch(name, bytes)));
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &want, 0.0)
}
