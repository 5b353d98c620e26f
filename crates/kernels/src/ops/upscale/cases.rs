//! Cases of `upscale`.

use ggml_format::GgmlType;

use super::{Mode, Upscale, reference};
use crate::case::Case;
use crate::data::{Data, Output, default_nmse, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ty, ne): (_, [u32; 4]) = (p.ty("type")?, p.list("ne")?);
    let (mode, align) = match p.word("mode")? {
        "bilinear|antialias" => (Mode::Antialias, false),
        m => {
            let (name, align) = m.strip_suffix("|align_corners").map_or((m, false), |n| (n, true));
            (p.row(Mode::ALL.into_iter().find(|k| k.word() == name), "a mode")?, align)
        }
    };
    let (a, to) = if p.has("scale_factor") {
        let by: u32 = p.num("scale_factor")?;
        let a = Tensor::new(ty, ne);
        let a = if p.flag("transpose")? { a.permute([1, 0, 2, 3]) } else { a };
        (a, [a.ne[0] * by, a.ne[1] * by, a.ne[2], a.ne[3]])
    } else {
        (Tensor::new(ty, ne), p.list("ne_tgt")?)
    };
    Ok(case(p.to_string(), Upscale { mode, align, a, y: Tensor::new(ty, to) }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16, GgmlType::BF16]);
    let [na, ny] = [0; 2].map(|_| [13, 11, 3, 2].map(|n| 1 + rng.below(n)));
    let mode = rng.pick(&Mode::ALL);
    let align = rng.below(2) == 0 && matches!(mode, Mode::Bilinear | Mode::Bicubic);
    let call = Upscale { mode, align, a: random_tensor(rng, ty, na), y: random_tensor(rng, ty, ny) };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: Upscale) -> Case {
    let a = Data::random(call.a, 1, -1.0, 1.0);
    let values = reference::upscale(call.mode, call.align, &a, &call.y);
    let nmse = default_nmse(call.y.ty);
    value_case(label, move |caps| call.dispatch(caps), vec![a.input("a")], Output::New(call.y), &values, nmse)
}
