//! Cases of `glu_nd`.

use ggml_format::GgmlType;

use super::kinds::{KINDS, Kind};
use super::nd::GluNd;
use crate::case::Case;
use crate::data::{Data, Output, default_nmse, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Gates near 0, where activations differ; far from 0 they are all alike. The grid cannot express these.
pub(super) fn by_hand() -> Vec<Case> {
    let t = Tensor::new(GgmlType::F32, [67, 5, 1, 1]);
    let call = |kind| GluNd { kind, a: t, b: t, y: t, alpha: 1.5, limit: 3.0 };
    KINDS.iter().map(|kind| case(format!("{} near 0", kind.name), call(kind), false, NEAR)).collect()
}

const WIDE: f32 = 150.0;
const NEAR: f32 = 4.0;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let kind = p.row(KINDS.iter().find(|k| k.ggml == p.op), "a row of KINDS")?;
    let (ty, ne): (_, [u32; 4]) = (p.ty("type")?, p.list("ne_a")?);
    let x = if p.flag("v")? {
        Tensor::new(ty, [ne[0] * 3, ne[1], ne[2], ne[3]]).slice([0; 4], ne)
    } else {
        Tensor::new(ty, ne)
    };
    let alpha = if p.has("alpha") { p.num("alpha")? } else { 1.0 };
    let limit = if p.has("limit") { p.num("limit")? } else { 1.0 };
    // Gate and value in one buffer, the gate first unless swapped; or two tensors.
    let halves = p.has("swapped").then(|| {
        let half = [ne[0] / 2, ne[1], ne[2], ne[3]];
        [x.slice([0; 4], half), x.slice([ne[0] / 2, 0, 0, 0], half)]
    });
    let (a, b) = match halves {
        Some([low, high]) if p.flag("swapped")? => (high, low),
        Some([low, high]) => (low, high),
        None => (x, x),
    };
    let y = Tensor::new(ty, a.ne);
    Ok(case(p.to_string(), GluNd { kind, a, b, y, alpha, limit }, halves.is_some(), WIDE))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let kind: &'static Kind = &KINDS[rng.below(KINDS.len() as u32) as usize];
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16, GgmlType::BF16]);
    let ne = random_ne(rng);
    let [a, b, y] = std::array::from_fn(|_| random_tensor(rng, ty, ne));
    let call = GluNd { kind, a, b, y, alpha: 1.5, limit: 3.0 };
    case(format!("random {call:?}"), call, false, NEAR)
}

/// A case with gates and values up to `most`.
fn case(label: String, call: GluNd, one_buffer: bool, most: f32) -> Case {
    let a = Data::random(call.a, 1, -most, most);
    let b = Data::random(call.b, if one_buffer { 1 } else { 2 }, -most, most);
    let params = [call.alpha.into(), call.limit.into()];
    let values: Vec<f64> = each(&call.y).map(|c| (call.kind.formula)(a.at(c), b.at(c), params)).collect();
    value_case(
        label,
        move |caps| call.dispatch(caps),
        vec![a.input("a"), b.input("b")],
        Output::New(call.y),
        &values,
        default_nmse(call.y.ty),
    )
}
