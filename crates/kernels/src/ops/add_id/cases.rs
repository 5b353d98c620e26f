//! Cases of `add_id`.

use ggml_format::GgmlType;

use super::{AddId, TYPES, reference};
use crate::case::Case;
use crate::data::{Data, Output, default_nmse, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (embd, experts): (u32, u32) = (p.num("n_embd")?, p.num("n_experts")?);
    let (used, token): (u32, u32) = (p.num("n_experts_used")?, p.num("n_token")?);
    let a = Tensor::new(p.ty("type_a")?, [embd, used, token, 1]);
    let b = Tensor::new(p.ty("type_b")?, [embd, experts, 1, 1]);
    // The first of all experts of a token.
    let ids = Tensor::new(GgmlType::I32, [experts, token, 1, 1]).slice([0; 4], [used, token, 1, 1]);
    Ok(case(p.to_string(), AddId { a, b, ids, y: a }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let (ty, tb) = (rng.pick(&TYPES), rng.pick(&TYPES));
    let [embd, experts, used, token] = [50, 9, 5, 12].map(|n| 1 + rng.below(n));
    let ne = [embd, used, token, 1];
    let call = AddId {
        a: random_tensor(rng, ty, ne),
        b: random_tensor(rng, tb, [embd, experts, 1, 1]),
        ids: random_tensor(rng, GgmlType::I32, [used, token, 1, 1]),
        y: random_tensor(rng, ty, ne),
    };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: AddId) -> Case {
    let (a, b) = (Data::random(call.a, 1, -1.0, 1.0), Data::random(call.b, 2, -1.0, 1.0));
    let mut rng = Rng::new(3);
    // One in sixteen ids is out of range.
    let ids: Vec<f32> = (0..call.ids.n_alloc)
        .map(|_| if rng.below(16) == 0 { -1.0 } else { rng.below(call.b.ne[1]) as f32 })
        .collect();
    let ids = Data::of(call.ids, &ids, 3);
    let values = reference::add_id(&call, &a, &b, &ids);
    let buffers = vec![a.input("a"), b.input("b"), ids.input("ids")];
    value_case(
        label,
        move |caps| call.dispatch(caps),
        buffers,
        Output::New(call.y),
        &values,
        default_nmse(call.y.ty),
    )
}
