//! Cases of `acc`.

use ggml_format::GgmlType;

use super::{Acc, reference};
use crate::case::Case;
use crate::data::{Data, Output, default_nmse, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// An empty b, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let y = Tensor::new(GgmlType::F32, [5, 3, 1, 1]);
    let b = Tensor::new(GgmlType::F32, [2, 0, 1, 1]);
    let view = y.slice([0; 4], [2, 0, 1, 1]);
    vec![case("empty b".into(), Acc { a: y, b, view, y })]
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ty, ne, nb): (_, [u32; 4], [u32; 4]) = (p.ty("type")?, p.list("ne_a")?, p.list("ne_b")?);
    let y = Tensor::new(ty, ne);
    // The axis along which b covers only every second row or matrix.
    let b = match p.num::<i32>("stride_dim")? {
        -1 => Tensor::new(ty, nb),
        dim => {
            let mut outer = nb;
            outer[dim as usize - 1] *= 2;
            Tensor::new(ty, outer).slice([0; 4], nb)
        }
    };
    Ok(case(p.to_string(), Acc { a: y, b, view: y.slice([0, 1, 0, 0], nb), y }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16, GgmlType::BF16]);
    let ne = random_ne(rng);
    let nb = ne.map(|n| 1 + rng.below(n));
    let at = std::array::from_fn(|k| rng.below(ne[k] - nb[k] + 1));
    let call = Acc {
        a: random_tensor(rng, ty, ne),
        b: random_tensor(rng, ty, nb),
        view: Tensor::new(ty, ne).slice(at, nb),
        y: random_tensor(rng, ty, ne),
    };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: Acc) -> Case {
    let (a, b) = (Data::random(call.a, 1, -1.0, 1.0), Data::random(call.b, 2, -1.0, 1.0));
    let values = reference::acc(&call, &a, &b);
    let buffers = vec![a.input("a"), b.input("b")];
    value_case(
        label,
        move |caps| call.dispatch(caps),
        buffers,
        Output::New(call.y),
        &values,
        default_nmse(call.y.ty),
    )
}
