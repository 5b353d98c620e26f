//! Cases of `ssm_conv`.

use ggml_format::GgmlType;

use super::{SsmConv, reference};
use crate::case::Case;
use crate::data::{Data, Output, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// With bias and SiLU, at ggml's sizes.
pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (taps, channels, tokens, seqs) in [(3, 1024, 3, 1), (4, 1536, 64, 4), (9, 2048, 1, 4)] {
        for (bias, silu) in [(false, true), (true, true), (true, false)] {
            let call = call(taps, channels, tokens, seqs, bias, silu);
            out.push(case(format!("{taps} taps {channels}x{tokens}x{seqs} bias {bias} silu {silu}"), call));
        }
    }
    out
}

fn call(taps: u32, channels: u32, tokens: u32, seqs: u32, bias: bool, silu: bool) -> SsmConv {
    let tensor = |ne| Tensor::new(GgmlType::F32, ne);
    SsmConv {
        a: tensor([taps - 1 + tokens, channels, seqs, 1]),
        weight: tensor([taps, channels, 1, 1]),
        bias: bias.then(|| tensor([channels, 1, 1, 1])),
        silu,
        y: tensor([channels, tokens, seqs, 1]),
    }
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (a, [taps, channels, ..]) = (p.list::<4>("ne_a")?, p.list::<4>("ne_b")?);
    Ok(case(p.to_string(), call(taps, channels, a[0] + 1 - taps, a[2], false, false)))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let mut pick = |n| 1 + rng.below(n);
    let mut call = call(pick(9), pick(70), pick(20), pick(3), pick(2) == 1, pick(2) == 1);
    call.a = random_tensor(rng, GgmlType::F32, call.a.ne);
    call.weight = random_tensor(rng, GgmlType::F32, call.weight.ne);
    call.y = random_tensor(rng, GgmlType::F32, call.y.ne);
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: SsmConv) -> Case {
    let (x, w) = (Data::random(call.a, 1, -1.0, 1.0), Data::random(call.weight, 2, -1.0, 1.0));
    let bias = call.bias.map(|b| Data::random(b, 3, -1.0, 1.0));
    let values = reference::ssm_conv(&x, &w, bias.as_ref(), call.silu, &call.y);
    let mut buffers = vec![x.input("a"), w.input("b")];
    buffers.extend(bias.map(|b| b.input("c")));
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(call.y), &values, 1e-10)
}
