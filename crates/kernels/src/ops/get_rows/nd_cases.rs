//! Cases of `get_rows_nd`.

use ggml_format::GgmlType;

use super::nd::GetRowsNd;
use crate::case::Case;
use crate::data::{Data, Output, each, move_case, random_tensor, value_case};
use crate::format::FORMATS;
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Cases in every format.
pub(super) fn cases() -> Vec<Case> {
    let of = |ty: GgmlType| {
        let n = 2 * ty.block_len() as u32;
        let call = GetRowsNd {
            a: Tensor::new(ty, [n, 5, 2, 1]),
            ids: Tensor::new(GgmlType::I32, [3, 2, 1, 1]),
            y: Tensor::new(GgmlType::F32, [n, 3, 2, 1]),
        };
        case(format!("{} in rows of {n}", ty.name()), call)
    };
    FORMATS.iter().map(|f| of(f.ty)).collect()
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let ty = p.ty("type")?;
    let [n, m, r, be1, be2]: [u32; 5] = [p.num("n")?, p.num("m")?, p.num("r")?, p.num("be1")?, p.num("be2")?];
    // A view into wider rows, at an offset.
    let at: u32 = p.num("offset_cols")?;
    let a = if p.flag("vs0")? {
        let more = ty.block_len().max(4) as u32;
        Tensor::new(ty, [n + more, m, be1, be2]).slice([at, 0, 0, 0], [n, m, be1, be2])
    } else {
        Tensor::new(ty, [n, m, be1, be2])
    };
    let half = if p.flag("v")? { r / 2 } else { r };
    let ids = Tensor::new(GgmlType::I32, [r, be1, be2, 1]).slice([0; 4], [half, be1, be2, 1]);
    let to = if ty == GgmlType::I32 { ty } else { GgmlType::F32 };
    Ok(case(p.to_string(), GetRowsNd { a, ids, y: Tensor::new(to, [n, half, be1, be2]) }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ty = if rng.below(2) == 0 {
        FORMATS[rng.below(FORMATS.len() as u32) as usize].ty
    } else {
        rng.pick(&[GgmlType::I32, GgmlType::F16, GgmlType::I16, GgmlType::F32])
    };
    let to = match ty {
        GgmlType::I32 | GgmlType::I16 => ty,
        _ if ty.block_len() == 1 && rng.below(2) == 0 => ty,
        _ => GgmlType::F32,
    };
    let block = ty.block_len() as u32;
    let n = block * (1 + rng.below(if block > 1 { 2 } else { 50 }));
    let [m, r, be1, be2] = [7, 9, 3, 3].map(|k| 1 + rng.below(k));
    let call = GetRowsNd {
        a: random_tensor(rng, ty, [n, m, be1, be2]),
        ids: random_tensor(rng, GgmlType::I32, [r, be1, be2, 1]),
        y: random_tensor(rng, to, [n, r, be1, be2]),
    };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: GetRowsNd) -> Case {
    let GetRowsNd { a, ids, y } = call;
    let data = Data::random(a, 1, -1.0, 1.0);
    let mut rng = Rng::new(2);
    // One in sixteen ids is out of range.
    let numbers: Vec<f32> =
        (0..ids.n_alloc).map(|_| if rng.below(16) == 0 { -1.0 } else { rng.below(a.ne[1]) as f32 }).collect();
    let ids = Data::of(ids, &numbers, 2);
    let buffers = vec![data.input("a"), ids.input("ids")];
    let dispatch = move |caps: &_| call.dispatch(caps);
    let row = |c: [u32; 4]| ids.at([c[1], c[2], c[3], 0]);
    if a.ty == y.ty {
        return move_case(label, dispatch, buffers, Output::New(y), |c| match row(c) {
            r if r < 0.0 => vec![0; y.ty.block_bytes()],
            r => data.cell([c[0], r as u32, c[2], c[3]]).to_vec(),
        });
    }
    let values: Vec<f64> = each(&y)
        .map(|c| match row(c) {
            r if r < 0.0 => 0.0,
            r => data.at([c[0], r as u32, c[2], c[3]]),
        })
        .collect();
    value_case(label, dispatch, buffers, Output::New(y), &values, 0.0)
}
