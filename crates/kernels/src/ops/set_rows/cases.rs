//! Cases of `set_rows`.

use ggml_format::GgmlType;

use super::SetRows;
use crate::case::Case;
use crate::data::{Data, Output, default_nmse, each, encoded_case, random_tensor};
use crate::encode;
use crate::format::FORMATS;
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Every format that can be written.
pub(super) fn cases() -> Vec<Case> {
    let of = |ty: GgmlType| {
        let n = 3 * ty.block_len() as u32;
        let call = SetRows {
            a: Tensor::new(GgmlType::F32, [n, 4, 2, 1]),
            ids: Tensor::new(GgmlType::I32, [4, 1, 1, 1]),
            y: Tensor::new(ty, [n, 5, 2, 1]),
        };
        case(format!("{} in rows of {n}", ty.name()), call)
    };
    FORMATS.iter().map(|f| f.ty).filter(|ty| encode::can_write(*ty)).map(of).collect()
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ty, from, idx) = (p.ty("type_dst")?, p.ty("type_src")?, p.ty("type_idx")?);
    let (ne, nr): ([u32; 4], [u32; 2]) = (p.list("ne")?, p.list("nr23")?);
    let r: u32 = p.num("r")?;
    let half = if p.flag("v")? { r / 2 } else { r };
    let y = Tensor::new(ty, [ne[0], ne[1], ne[2] * nr[0], ne[3] * nr[1]]);
    let a = Tensor::new(from, [ne[0], r, y.ne[2], y.ne[3]]);
    let ids = Tensor::new(idx, [r, ne[2], ne[3], 1]);
    let (na, ni) = ([ne[0], half, y.ne[2], y.ne[3]], [half, ne[2], ne[3], 1]);
    Ok(case(p.to_string(), SetRows { a: a.slice([0; 4], na), ids: ids.slice([0; 4], ni), y }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let plain = [GgmlType::F32, GgmlType::F16, GgmlType::BF16];
    let blocks: Vec<GgmlType> =
        FORMATS.iter().map(|f| f.ty).filter(|t| t.block_len() > 1 && encode::can_write(*t)).collect();
    let ty = if rng.below(2) == 0 { rng.pick(&blocks) } else { rng.pick(&plain) };
    let block = ty.block_len() as u32;
    let n = if block > 1 { block * (1 + rng.below(3)) } else { 1 + rng.below(40) };
    let rows = 1 + rng.below(9);
    let [two, three, r2, r3] = [0; 4].map(|_| 1 + rng.below(3));
    let take = 1 + rng.below(rows);
    let from = rng.pick(&plain);
    let idx = rng.pick(&[GgmlType::I32, GgmlType::I64]);
    let call = SetRows {
        a: random_tensor(rng, from, [n, take, two * r2, three * r3]),
        ids: random_tensor(rng, idx, [take, two, three, 1]),
        y: random_tensor(rng, ty, [n, rows, two * r2, three * r3]),
    };
    case(format!("random {call:?}"), call)
}

/// A case; rows go to distinct random places, one in sixteen to an out-of-range id.
fn case(label: String, call: SetRows) -> Case {
    let SetRows { a, ids, y } = call;
    let data = if y.ty.block_len() > 1 { Data::runs(a, 1, -1.0, 1.0) } else { Data::random(a, 1, -1.0, 1.0) };
    let mut rng = Rng::new(2);
    let mut numbers = vec![0.0; ids.n_alloc as usize];
    for i3 in 0..ids.ne[2] {
        for i2 in 0..ids.ne[1] {
            let mut rows: Vec<u32> = (0..y.ne[1]).collect();
            for r in 0..ids.ne[0] {
                let row = rows.swap_remove(rng.below(rows.len() as u32) as usize);
                let gone = if rng.below(16) == 0 { y.ne[1] as f32 } else { row as f32 };
                numbers[ids.index([r, i2, i3, 0])] = gone;
            }
        }
    }
    let numbers = Data::of(ids, &numbers, 2);
    // Previous contents, which remain where no row goes.
    let before = Data::random(y, 3, -1.0, 1.0);
    let values: Vec<f32> = each(&a).map(|c| data.at(c) as f32).collect();
    // The values rounded to the type of y.
    let stored = Data::of(Tensor::new(y.ty, a.ne), &values, 1);
    let mut from = vec![None; y.n_elem() as usize];
    let order = Tensor::new(y.ty, y.ne);
    for c in each(&a) {
        let to = numbers.wrapped([c[1], c[2], c[3], 0]) as u32;
        if to < y.ne[1] {
            from[order.index([c[0], to, c[2], c[3]])] = Some(c);
        }
    }
    let at = |c: [u32; 4]| from[order.index(c)];
    let values: Vec<f64> = each(&y).map(|c| at(c).map_or_else(|| before.at(c), |f| stored.at(f))).collect();
    let blocks = y.ty.block_len() > 1;
    let source =
        blocks.then(|| each(&y).map(|c| at(c).map_or_else(|| before.at(c), |f| data.at(f))).collect());
    let nmse = if blocks { encode::nmse(y.ty, y.n_elem()) } else { default_nmse(y.ty) };
    let buffers = vec![data.input("a"), numbers.input("ids")];
    let steps = move |caps: &_| call.dispatch(caps);
    encoded_case(label, steps, buffers, Output::InPlace(before), &values, nmse, source)
}
