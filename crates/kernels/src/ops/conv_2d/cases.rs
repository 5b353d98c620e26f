//! Cases of `conv_2d`.

use ggml_format::GgmlType;

use super::{Conv2d, Window, reference};
use crate::case::Case;
use crate::data::{Data, Output, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let depthwise = p.op == "CONV_2D_DW";
    let window = if depthwise {
        let two = |n: u32| [n, n];
        Window {
            stride: two(p.num("stride")?),
            padding: two(p.num("padding")?),
            dilation: two(p.num("dilation")?),
        }
    } else {
        Window {
            stride: [p.num("stride0")?, p.num("stride1")?],
            padding: [p.num("padding0")?, p.num("padding1")?],
            dilation: [p.num("dilation0")?, p.num("dilation1")?],
        }
    };
    let (nb, na): ([u32; 4], [u32; 4]) = (p.list("ne_input")?, p.list("ne_kernel")?);
    let ta = p.ty("type_kernel")?;
    // Channels innermost in memory (NHWC).
    let innermost = p.flag("cwhn")?;
    let new = |ty, ne: [u32; 4]| {
        if innermost {
            Tensor::new(ty, [ne[2], ne[0], ne[1], ne[3]]).permute([2, 0, 1, 3])
        } else {
            Tensor::new(ty, ne)
        }
    };
    let b = new(GgmlType::F32, nb);
    // The kernel tensor may be a view into a larger one, after its first channel.
    let a = if p.has("kernel_offset") && p.flag("kernel_offset")? {
        new(ta, [na[0], na[1], na[2], na[3] + 1]).slice([0, 0, 0, 1], na)
    } else {
        new(ta, na)
    };
    Ok(case(p.to_string(), a, b, window, depthwise, None))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ta = rng.pick(&[GgmlType::F32, GgmlType::F16, GgmlType::BF16]);
    let tb = rng.pick(&[GgmlType::F32, GgmlType::F16]);
    let depthwise = rng.below(2) == 0;
    let two = |rng: &mut Rng, low, n| [low + rng.below(n), low + rng.below(n)];
    let window = Window { stride: two(rng, 1, 3), padding: two(rng, 0, 4), dilation: two(rng, 1, 3) };
    let [w, h, ic, oc, n, kw, kh] = [14, 12, 4, 5, 3, 3, 4].map(|n| 1 + rng.below(n));
    let na = if depthwise { [kw, kh, 1, ic] } else { [kw, kh, ic, oc] };
    let (a, b) = (random_tensor(rng, ta, na), random_tensor(rng, tb, [w, h, ic, n]));
    let ny = size(&a, &b, window);
    let y = (ny.iter().all(|n| *n > 0)).then(|| random_tensor(rng, tb, ny));
    case(format!("random {a:?} {b:?} {y:?} {window:?}"), a, b, window, depthwise, y)
}

fn size(a: &Tensor, b: &Tensor, window: Window) -> [u32; 4] {
    let [x, y] = [0, 1].map(|k| window.places(k, b.ne[k], a.ne[k]));
    [x, y, a.ne[3], b.ne[3]]
}

fn case(label: String, a: Tensor, b: Tensor, window: Window, depthwise: bool, y: Option<Tensor>) -> Case {
    let y = y.unwrap_or_else(|| Tensor::new(b.ty, size(&a, &b, window)));
    let call = Conv2d { a, b, y, window, depthwise };
    let (da, db) = (Data::random(a, 1, -1.0, 1.0), Data::random(b, 2, -1.0, 1.0));
    let values = reference::conv_2d(&call, &da, &db);
    // ggml allows 5e-4; f32 sums without intermediate rounding are more accurate.
    let nmse = if b.ty == GgmlType::F32 { 1e-7 } else { 1e-6 };
    let buffers = vec![da.input("a"), db.input("b")];
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(y), &values, nmse)
}
