//! Cases of `sum`.

use ggml_format::GgmlType;

use super::{Sum, What, reference};
use crate::case::{Case, CaseBuffer};
use crate::data::{Data, Output, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Empty rows, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let rows = Tensor::new(GgmlType::F32, [0, 3, 2, 1]);
    let all = Tensor::new(GgmlType::F16, [4, 0, 1, 1]);
    vec![case("empty rows".into(), What::Rows, rows), case("empty".into(), What::All, all)]
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ne, ty) = (p.list::<4>("ne")?, p.ty("type")?);
    let a = Tensor::new(ty, ne);
    if p.op == "SUM" {
        let axes = if p.has("permute") { p.list("permute")? } else { [0, 1, 2, 3] };
        return Ok(case(p.to_string(), What::All, a.permute(axes.map(|k| k as usize))));
    }
    let what = if p.op == "MEAN" { What::Means } else { What::Rows };
    let a = if p.flag("slice")? { a.slice([0, 0, 0, 1], [ne[0], ne[1], ne[2] / 2, ne[3] - 1]) } else { a };
    let a = if p.flag("permute")? { a.permute([0, 2, 3, 1]) } else { a };
    Ok(case(p.to_string(), what, a))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let what = rng.pick(&[What::Rows, What::Means, What::All]);
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16, GgmlType::BF16]);
    let ne = random_ne(rng);
    let a = random_tensor(rng, ty, ne);
    case(format!("random {what:?} {a:?}"), what, a)
}

fn case(label: String, what: What, a: Tensor) -> Case {
    // Sums of values around 0 would be small relative to their rounding errors.
    let data = Data::random(a, 1, -0.25, 1.0);
    let [ne0, ne1, ne2, ne3] = a.ne;
    let y = Tensor::new(GgmlType::F32, if what == What::All { [1; 4] } else { [1, ne1, ne2, ne3] });
    let scale = if what == What::Means { 1.0 / f64::from(ne0) } else { 1.0 };
    let values = reference::sum(&data, what == What::All, scale);
    let call = Sum { what, a, y };
    let mut buffers = vec![data.input("a")];
    if call.scratch_bytes() > 0 {
        buffers.push(CaseBuffer::scratch("scratch", call.scratch_bytes()));
    }
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(y), &values, 1e-10)
}
