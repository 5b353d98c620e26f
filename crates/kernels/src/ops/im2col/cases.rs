//! Cases of `im2col`.

use ggml_format::GgmlType;

use super::{Im2col, reference};
use crate::case::Case;
use crate::data::{Data, Output, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::ops::conv_2d::Window;
use crate::rng::Rng;
use crate::tensor::Tensor;

/// An empty window, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let b = Tensor::new(GgmlType::F32, [9, 8, 2, 1]);
    let window = Window { stride: [1; 2], padding: [0; 2], dilation: [1; 2] };
    let cases = [[0, 3], [3, 0]].map(|k| {
        let call = Im2col { b, y: b, k, window, line: false };
        let call = Im2col { y: Tensor::new(GgmlType::F32, call.size()), ..call };
        case(format!("empty window {k:?}"), call)
    });
    cases.into()
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let line = !p.flag("is_2D")?;
    // In one dimension the second numbers are unused, and 0.
    let window = Window {
        stride: [p.num("s0")?, p.num::<u32>("s1")?.max(1)],
        padding: [p.num("p0")?, p.num("p1")?],
        dilation: [p.num("d0")?, p.num::<u32>("d1")?.max(1)],
    };
    let b = Tensor::new(p.ty("type_input")?, p.list("ne_input")?);
    let k: [u32; 4] = p.list("ne_kernel")?;
    let call = Im2col { b, y: b, k: [k[0], if line { 1 } else { k[1] }], window, line };
    let y = Tensor::new(p.ty("dst_type")?, call.size());
    Ok(case(p.to_string(), Im2col { y, ..call }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let types = [GgmlType::F32, GgmlType::F16, GgmlType::BF16];
    let (tb, ty) = (rng.pick(&types), rng.pick(&types));
    let two = |rng: &mut Rng, low, n| [low + rng.below(n), low + rng.below(n)];
    let window = Window { stride: two(rng, 1, 3), padding: two(rng, 0, 4), dilation: two(rng, 1, 2) };
    let k = two(rng, 1, 3);
    let line = rng.below(3) == 0;
    let ne = [
        9 + rng.below(9),
        if line { 3 } else { 8 + rng.below(6) },
        1 + rng.below(4),
        if line { 1 } else { 2 },
    ];
    let b = random_tensor(rng, tb, ne);
    let call = Im2col { b, y: b, k: [k[0], if line { 1 } else { k[1] }], window, line };
    let y = random_tensor(rng, ty, call.size());
    let call = Im2col { y, ..call };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: Im2col) -> Case {
    let b = Data::random(call.b, 1, -1.0, 1.0);
    let values = reference::im2col(&call, &b);
    // Copied values, rounded once.
    let nmse = if call.y.ty == GgmlType::F32 { 0.0 } else { 1e-6 };
    value_case(label, move |caps| call.dispatch(caps), vec![b.input("b")], Output::New(call.y), &values, nmse)
}
