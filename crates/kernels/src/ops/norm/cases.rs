//! Cases of `norm`.

use chaski_graph::NormKind;
use ggml_format::GgmlType;

use super::{Norm, reference};
use crate::case::Case;
use crate::data::{Data, Output, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// A norm without operands.
const PLAIN: Norm = Norm {
    kind: NormKind::Rms,
    eps: 1e-6,
    groups: None,
    mul: None,
    add: None,
    by: 1.0,
    a: None,
    y: Tensor::new(GgmlType::F32, [1; 4]),
};

/// Fusions that models use: a norm with the product with weights, and a sum with a bias or other activations.
pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for (k, n) in [(1, 5), (511, 5), (1025, 4), (8192, 2), (16896, 2)] {
        let y = Tensor::new(GgmlType::F32, [k, n, 2, 1]);
        let w = Tensor::new(GgmlType::F32, [k, 1, 1, 1]);
        for kind in [NormKind::Norm, NormKind::Rms, NormKind::L2] {
            for add in [None, Some(w), Some(y)] {
                out.push(case(
                    format!("{kind:?} k{k} add {:?}", add.map(|t| t.ne)),
                    Norm {
                        kind,
                        mul: Some(w),
                        add,
                        by: if add == Some(y) { 0.375 } else { 1.0 },
                        a: Some(y),
                        y,
                        ..PLAIN
                    },
                ));
            }
        }
    }
    // Groups with a shorter last one, more groups than channels, and no channels.
    for (groups, n) in [(1, 7), (3, 7), (4, 7), (9, 7), (2, 0)] {
        let y = Tensor::new(GgmlType::F32, [5, 3, n, 2]);
        out.push(case(
            format!("{groups} groups of {n} channels"),
            Norm { kind: NormKind::Norm, groups: Some(groups), a: Some(y), y, ..PLAIN },
        ));
    }
    out
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let ne: [u32; 4] = p.list("ne")?;
    let ty = p.ty("type")?;
    let kind = match p.op.as_str() {
        "RMS_NORM" => NormKind::Rms,
        "L2_NORM" => NormKind::L2,
        _ => NormKind::Norm,
    };
    let groups = if p.op == "GROUP_NORM" { Some(p.num("num_groups")?) } else { None };
    let mut a = Tensor::new(ty, ne);
    if p.has("v") && p.flag("v")? {
        a = a.slice([0; 4], ne.map(|n| n / 2));
    }
    if p.has("noncontig_rows") && p.flag("noncontig_rows")? {
        a = Tensor::new(ty, [ne[1], ne[0], ne[2], ne[3]]).permute([1, 0, 2, 3]);
    }
    let in_place = p.has("inplace") && p.flag("inplace")?;
    let y = if in_place { a } else { Tensor::new(ty, a.ne) };
    let a = (!in_place).then_some(a);
    Ok(case(p.to_string(), Norm { kind, eps: p.num("eps")?, groups, a, y, ..PLAIN }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let kind = rng.pick(&[NormKind::Norm, NormKind::Rms, NormKind::L2]);
    let ne = random_ne(rng);
    let tensor = |rng: &mut Rng, ne| random_tensor(rng, GgmlType::F32, ne);
    let y = tensor(rng, ne);
    let a = (rng.below(4) > 0).then(|| tensor(rng, ne));
    let small = |rng: &mut Rng| ne.map(|n| if rng.below(2) == 0 { n } else { 1 });
    let (b, c) = (small(rng), small(rng));
    let mul = (rng.below(3) > 0).then(|| tensor(rng, b));
    let add = mul.filter(|_| rng.below(2) == 0).map(|_| tensor(rng, c));
    case(format!("random {kind:?} {a:?} {mul:?} {add:?} {y:?}"), Norm { kind, mul, add, a, y, ..PLAIN })
}

fn case(label: String, call: Norm) -> Case {
    let data = Data::random(call.a.unwrap_or(call.y), 1, -1.0, 1.5);
    let rows = call.rows();
    let values: Vec<f64> = each(&data.tensor).map(|c| data.at(c)).collect();
    let mut out: Vec<f64> = values
        .chunks(rows.outer.max(1) as usize)
        .flat_map(|outer| outer.chunks(rows.len.max(1) as usize))
        .flat_map(|row| reference::norm(call.kind, f64::from(call.eps), row))
        .collect();
    let mut buffers = Vec::new();
    if call.a.is_some() {
        buffers.push(data.input("a"));
    }
    if let Some(t) = call.mul {
        let b = Data::random(t, 2, 0.5, 1.5);
        out.iter_mut().zip(each(&call.y)).for_each(|(v, c)| *v *= b.wrapped(c));
        buffers.push(b.input("b"));
    }
    if let Some(t) = call.add {
        let b = Data::random(t, 3, -1.0, 1.0);
        out.iter_mut().zip(each(&call.y)).for_each(|(v, c)| *v += b.wrapped(c));
        buffers.push(b.input("c"));
    }
    out.iter_mut().for_each(|v| *v *= f64::from(call.by));
    let y = if call.a.is_some() { Output::New(call.y) } else { Output::InPlace(data) };
    value_case(label, move |caps| call.dispatch(caps), buffers, y, &out, 1e-10)
}
