//! Cases of `pool`.

use ggml_format::GgmlType;

use super::{Pool, reference};
use crate::case::Case;
use crate::data::{Data, Output, default_nmse, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::ops::conv_2d::Window;
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let line = p.op == "POOL_1D";
    let second = |key, one: u32| if line { Ok(one) } else { p.num(key) };
    let a = Tensor::new(p.ty("type_input")?, p.list("ne_input")?);
    let call = Pool {
        mean: p.word("pool_type")? == "avg",
        a,
        y: a,
        k: [p.num("k0")?, second("k1", 1)?],
        window: Window {
            stride: [p.num("s0")?, second("s1", 1)?],
            padding: [p.num("p0")?, second("p1", 0)?],
            dilation: [1, 1],
        },
        inner: line,
    };
    Ok(case(p.to_string(), Pool { y: Tensor::new(a.ty, call.size()), ..call }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16, GgmlType::BF16]);
    let two = |rng: &mut Rng, low, n| [low + rng.below(n), low + rng.below(n)];
    let (k, stride, padding) = (two(rng, 1, 4), two(rng, 1, 3), two(rng, 0, 3));
    let ne = [5 + rng.below(12), 5 + rng.below(9), 1 + rng.below(3), 1 + rng.below(3)];
    let a = random_tensor(rng, ty, ne);
    let window = Window { stride, padding, dilation: [1, 1] };
    let call = Pool { mean: rng.below(2) == 0, a, y: a, k, window, inner: rng.below(2) == 0 };
    let y = random_tensor(rng, ty, call.size());
    let call = Pool { y, ..call };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: Pool) -> Case {
    let a = Data::random(call.a, 1, -1.0, 1.0);
    let values = reference::pool(&call, &a);
    let nmse = default_nmse(call.y.ty);
    value_case(label, move |caps| call.dispatch(caps), vec![a.input("a")], Output::New(call.y), &values, nmse)
}
