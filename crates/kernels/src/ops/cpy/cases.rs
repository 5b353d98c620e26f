//! Cases of `cpy`, `dup` and `cont`.

use ggml_format::GgmlType;

use super::Cpy;
use crate::case::Case;
use crate::data::{
    Data, Output, default_nmse, each, encoded_case, move_case, random_ne, random_tensor, value_case,
};
use crate::encode;
use crate::format::FORMATS;
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// From every format, and to every format that can be written.
pub(super) fn cases() -> Vec<Case> {
    let of = |from: GgmlType, to: GgmlType| {
        let ne = [2 * from.block_len().max(to.block_len()) as u32, 3, 2, 1];
        let [a, y] = [from, to].map(|ty| Tensor::new(ty, ne));
        case(format!("{} to {}", from.name(), to.name()), a, y.permute([0, 2, 1, 3]))
    };
    let mut out = Vec::new();
    for f in FORMATS {
        out.extend([GgmlType::F16, GgmlType::I32].map(|to| of(f.ty, to)));
        if encode::can_write(f.ty) {
            out.push(of(GgmlType::F32, f.ty));
        }
    }
    out
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let permuted = |t: Tensor, axes: [u32; 4]| {
        if axes == [0; 4] { t } else { t.permute(axes.map(|a| a as usize)) }
    };
    let (a, y) = if p.op == "CPY" {
        let a = permuted(Tensor::new(p.ty("type_src")?, p.list("ne_src")?), p.list("permute_src")?);
        let a = if p.flag("_src_transpose")? { a.permute([1, 0, 2, 3]) } else { a };
        let ty = p.ty("type_dst")?;
        let ne = if p.has("ne_dst") { p.list("ne_dst")? } else { a.ne };
        let y = if p.has("dst_alloc") {
            Tensor::new(ty, p.list("dst_alloc")?).slice([0; 4], ne)
        } else {
            permuted(Tensor::new(ty, ne), p.list("permute_dst")?)
        };
        (a, y)
    } else {
        let a = Tensor::new(p.ty("type")?, p.list("ne")?);
        let a = if p.has("use_view_slice") && p.flag("use_view_slice")? {
            // The last row of each matrix.
            a.slice([0, a.ne[1] - 1, 0, 0], [a.ne[0], 1, a.ne[2], a.ne[3]])
        } else {
            match p.has("permute").then(|| p.list("permute")).transpose()? {
                Some([0, 0, 0, 0]) => a.permute([1, 0, 2, 3]),
                Some(axes) => permuted(a, axes),
                None => a,
            }
        };
        (a, Tensor::new(a.ty, a.ne))
    };
    Ok(case(p.to_string(), a, y))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let plain = [
        GgmlType::F32,
        GgmlType::F16,
        GgmlType::BF16,
        GgmlType::I32,
        GgmlType::I16,
        GgmlType::I8,
        GgmlType::I64,
    ];
    let a = if rng.below(3) == 0 {
        FORMATS[rng.below(FORMATS.len() as u32) as usize].ty
    } else {
        rng.pick(&plain)
    };
    let any: Vec<GgmlType> = match a {
        GgmlType::I8 | GgmlType::I16 | GgmlType::I64 => vec![a],
        GgmlType::I32 => plain[..4].to_vec(),
        GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 => plain[..4]
            .iter()
            .copied()
            .chain(FORMATS.iter().map(|f| f.ty).filter(|t| encode::can_write(*t)))
            .collect(),
        _ => plain[..4].iter().copied().chain([a]).collect(),
    };
    let y = rng.pick(&any);
    let block = a.block_len().max(y.block_len()) as u32;
    let mut ne = random_ne(rng);
    if block > 1 {
        ne = [block * (1 + rng.below(3)), 1 + rng.below(5), 1 + rng.below(3), 1 + rng.below(3)];
    }
    let (ta, ty) = (random_tensor(rng, a, ne), random_tensor(rng, y, ne));
    case(format!("random {ta:?} {ty:?}"), ta, ty)
}

fn case(label: String, a: Tensor, y: Tensor) -> Case {
    let blocks = y.ty.block_len() > 1 && a.ty != y.ty;
    let data = if blocks { Data::runs(a, 1, -150.0, 150.0) } else { Data::random(a, 1, -150.0, 150.0) };
    let call = move |caps: &_| Cpy { a, y }.dispatch(caps);
    let input = vec![data.input("a")];
    if a.ty == y.ty {
        let (from, to) = (a.cells(), y.cells());
        // Linear index in both tensors.
        let order = |c: [u32; 4]| c[0] + to.ne[0] * (c[1] + to.ne[1] * (c[2] + to.ne[2] * c[3]));
        return move_case(label, call, input, Output::New(y), |c| data.cell(from.coords(order(c))).to_vec());
    }
    let values: Vec<f64> = each(&a).map(|c| data.at(c)).collect();
    let (values, nmse) = match y.ty {
        GgmlType::I32 => (values.iter().copied().map(f64::trunc).collect(), 0.0),
        ty if ty.block_len() > 1 => {
            // Through ggml-format's quantiser, which is the reference.
            let singles: Vec<f32> = values.iter().map(|v| *v as f32).collect();
            let q = Data::of(Tensor::new(ty, y.ne), &singles, 1);
            let made: Vec<f64> = each(&q.tensor).map(|c| q.at(c)).collect();
            let nmse = encode::nmse(ty, y.n_elem());
            return encoded_case(label, call, input, Output::New(y), &made, nmse, Some(values));
        }
        ty => (values, default_nmse(ty)),
    };
    value_case(label, call, input, Output::New(y), &values, nmse)
}
