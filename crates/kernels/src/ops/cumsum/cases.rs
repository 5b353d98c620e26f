//! Cases of `cumsum`.

use ggml_format::GgmlType;

use super::{Cumsum, reference};
use crate::case::{Case, CaseBuffer};
use crate::data::{Data, Output, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Empty rows, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let a = Tensor::new(GgmlType::F32, [0, 3, 1, 1]);
    vec![case("empty rows".into(), a, a)]
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let a = Tensor::new(p.ty("type")?, p.list("ne")?);
    Ok(case(p.to_string(), a, a))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let mut ne = random_ne(rng);
    if rng.below(4) == 0 {
        ne = [2000 + rng.below(6000), 1 + rng.below(3), 2, 1];
    }
    let (a, y) = (random_tensor(rng, GgmlType::F32, ne), random_tensor(rng, GgmlType::F32, ne));
    case(format!("random {a:?} {y:?}"), a, y)
}

fn case(label: String, a: Tensor, y: Tensor) -> Case {
    let data = Data::random(a, 1, -1.0, 1.0);
    let values = reference::cumsum(&data);
    let call = Cumsum { a, y };
    let mut buffers = vec![data.input("a")];
    if call.scratch_bytes() > 0 {
        buffers.push(CaseBuffer::scratch("parts", call.scratch_bytes()));
    }
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(y), &values, 1e-10)
}
