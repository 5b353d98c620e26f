//! Cases of `soft_max`.

use ggml_format::GgmlType;

use super::{SoftMax, reference};
use crate::case::{Case, CaseBuffer};
use crate::data::{Data, Output, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Long rows in place, rows that are one longer than a chunk, and a row of one value.
pub(super) fn cases() -> Vec<Case> {
    let plain = |y| SoftMax { a: None, mask: None, sinks: None, scale: 1.0, max_bias: 0.0, y };
    [[32_769, 3, 1, 1], [40_961, 1, 2, 1], [1, 70_000, 1, 1], [0, 3, 1, 1]]
        .map(|ne| case(format!("in place {ne:?}"), plain(Tensor::new(GgmlType::F32, ne))))
        .into()
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ne, ty, nr) = (p.list::<4>("ne")?, p.ty("type")?, p.list::<2>("nr23")?);
    let y = Tensor::new(ty, [ne[0], ne[1], ne[2] * nr[0], ne[3] * nr[1]]);
    let m_prec = p.ty("m_prec")?;
    let call = SoftMax {
        a: (!p.flag("inplace")?).then_some(y),
        mask: p.flag("mask")?.then(|| Tensor::new(m_prec, ne)),
        sinks: p.flag("sinks")?.then(|| Tensor::new(GgmlType::F32, [y.ne[2], 1, 1, 1])),
        scale: p.num("scale")?,
        max_bias: p.num("max_bias")?,
        y,
    };
    Ok(case(p.to_string(), call))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ne = random_ne(rng);
    let tensor = |rng: &mut Rng, ty, ne| random_tensor(rng, ty, ne);
    let y = tensor(rng, GgmlType::F32, ne);
    let a = (rng.below(3) > 0).then(|| tensor(rng, GgmlType::F32, ne));
    let one = |rng: &mut Rng, n| if rng.below(2) == 0 { n } else { 1 };
    let mask = [ne[0] + rng.below(3), ne[1] + rng.below(3), one(rng, ne[2]), one(rng, ne[3])];
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16]);
    let mask = (rng.below(3) > 0).then(|| tensor(rng, ty, mask));
    let sinks = (rng.below(2) > 0).then(|| Tensor::new(GgmlType::F32, [ne[2], 1, 1, 1]));
    let call =
        SoftMax { a, mask, sinks, scale: rng.range(0.1, 2.0), max_bias: rng.pick(&[0.0, 4.0, 8.0]), y };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: SoftMax) -> Case {
    let y = call.y;
    let data = Data::random(call.a.unwrap_or(y), 3, -4.0, 4.0);
    let mut buffers = Vec::new();
    if call.a.is_some() {
        buffers.push(data.input("a"));
    }
    let mask = call.mask.map(|m| {
        let mut v: Vec<f32> = Data::random(m, 4, -3.0, 3.0).values().iter().map(|v| *v as f32).collect();
        v.iter_mut().step_by(7).for_each(|v| *v = f32::NEG_INFINITY);
        let m = Data::of(m, &v, 0);
        buffers.push(m.input("mask"));
        m
    });
    let sinks = call.sinks.map(|s| {
        let s = Data::random(s, 5, -3.0, 6.0);
        buffers.push(s.input("sinks"));
        s
    });
    if call.scratch_bytes() > 0 {
        buffers.push(CaseBuffer::scratch("parts", call.scratch_bytes()));
    }
    let mut values = Vec::new();
    for r in 0..y.ne[1] * y.ne[2] * y.ne[3] {
        let [_, c1, c2, c3] = Tensor::new(y.ty, [1, y.ne[1], y.ne[2], y.ne[3]]).coords(r);
        let by = reference::slope(call.max_bias.into(), y.ne[2], c2);
        let row: Vec<f64> = (0..y.ne[0])
            .map(|c0| {
                let v = data.at([c0, c1, c2, c3]) * f64::from(call.scale);
                v + mask.as_ref().map_or(0.0, |m| by * m.wrapped([c0, c1, c2, c3]))
            })
            .collect();
        values.extend(reference::soft_max(&row, sinks.as_ref().map(|s| s.at([c2, 0, 0, 0]))));
    }
    let y = if call.a.is_some() { Output::New(y) } else { Output::InPlace(data) };
    value_case(label, move |caps| call.dispatch(caps), buffers, y, &values, 1e-9)
}
