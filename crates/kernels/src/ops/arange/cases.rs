//! Cases of `arange`.

use ggml_format::GgmlType;

use super::Arange;
use crate::case::Case;
use crate::data::{Output, default_nmse, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let [start, stop, step]: [f32; 3] = [p.num("start")?, p.num("stop")?, p.num("step")?];
    let n = ((stop - start) / step).ceil() as u32;
    Ok(case(p.to_string(), Arange { start, step, y: Tensor::new(p.ty("type")?, [n, 1, 1, 1]) }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16, GgmlType::BF16]);
    let ne = random_ne(rng);
    let call =
        Arange { start: rng.range(-5.0, 5.0), step: rng.range(-2.0, 2.0), y: random_tensor(rng, ty, ne) };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: Arange) -> Case {
    let values: Vec<f64> =
        (0..call.y.n_elem()).map(|i| f64::from(call.start) + f64::from(i) * f64::from(call.step)).collect();
    let nmse = default_nmse(call.y.ty);
    value_case(label, move |caps| call.dispatch(caps), vec![], Output::New(call.y), &values, nmse)
}
