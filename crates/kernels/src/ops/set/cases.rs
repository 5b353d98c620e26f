//! Cases of `set`.

use ggml_format::GgmlType;

use super::Set;
use crate::case::Case;
use crate::data::{Data, Output, each, move_case, random_ne, random_tensor};
use crate::format::FORMATS;
use crate::grid::{GridError, Params};
use crate::ops::cpy::Cpy;
use crate::rng::Rng;
use crate::tensor::Tensor;

/// An empty b, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let y = Tensor::new(GgmlType::F32, [5, 3, 1, 1]);
    let b = Tensor::new(GgmlType::F32, [2, 0, 1, 1]);
    let view = y.slice([0; 4], [2, 0, 1, 1]);
    vec![case("empty b".into(), Set { a: y, b, view, y }, false)]
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ty, ne, dim): (_, [u32; 4], usize) = (p.ty("type_src")?, p.list("ne")?, p.num("dim")?);
    let ny: [u32; 4] = std::array::from_fn(|k| ne[k] * if k < dim { 2 } else { 1 });
    let y = Tensor::new(ty, ny);
    let offset = (0..dim).map(|k| (ny[k] - ne[k]) / 2 * y.stride[k]).sum();
    // As in ggml's test: the strides of b, so the view is contiguous.
    let b = Tensor::new(ty, ne);
    let view = Tensor { offset, n_alloc: y.n_alloc, ..b };
    Ok(case(p.to_string(), Set { a: y, b, view, y }, p.flag("inplace")?))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let plain = [GgmlType::F32, GgmlType::F16, GgmlType::I8, GgmlType::I64];
    let ty = if rng.below(3) == 0 {
        FORMATS[rng.below(FORMATS.len() as u32) as usize].ty
    } else {
        rng.pick(&plain)
    };
    let block = ty.block_len() as u32;
    let mut ne = random_ne(rng);
    if block > 1 {
        ne[0] = 1 + ne[0] % 3;
    }
    // Sizes in blocks.
    let nb = ne.map(|n| 1 + rng.below(n));
    let at: [u32; 4] = std::array::from_fn(|k| rng.below(ne[k] - nb[k] + 1));
    let values = |[n, rest @ ..]: [u32; 4]| [n * block, rest[0], rest[1], rest[2]];
    let (ne, nb, at) = (values(ne), values(nb), values(at));
    let call = Set {
        a: random_tensor(rng, ty, ne),
        b: random_tensor(rng, ty, nb),
        view: Tensor::new(ty, ne).slice(at, nb),
        y: random_tensor(rng, ty, ne),
    };
    case(format!("random {call:?}"), call, false)
}

fn case(label: String, call: Set, in_place: bool) -> Case {
    let (a, b) = (Data::random(call.a, 1, -100.0, 100.0), Data::random(call.b, 2, -100.0, 100.0));
    if in_place {
        let cpy = Cpy { a: call.b, y: call.view };
        let y = Output::InPlace(Data::new(call.view, a.bytes));
        return move_case(
            label,
            move |caps| cpy.dispatch(caps),
            vec![b.input("a")],
            y,
            |c| b.cell(c).to_vec(),
        );
    }
    // Linear index of each cell of the view among those of y.
    let (view, y) = (call.view.cells(), call.y.cells());
    let mut from = vec![None; y.n_elem() as usize];
    each(&view).for_each(|c| from[view.index(c)] = Some(c));
    let order = Tensor::new(y.ty, y.ne);
    let buffers = vec![a.input("a"), b.input("b")];
    move_case(
        label,
        move |caps| call.dispatch(caps),
        buffers,
        Output::New(call.y),
        |c| from[order.index(c)].map_or_else(|| a.cell(c), |v| b.cell(v)).to_vec(),
    )
}
