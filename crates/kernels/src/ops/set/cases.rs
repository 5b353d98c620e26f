//! Cases of `set`.

use super::Set;
use crate::case::Case;
use crate::data::{Data, Output, each, move_case};
use crate::grid::{GridError, Params};
use crate::ops::cpy::Cpy;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ty, ne, dim): (_, [u32; 4], usize) = (p.ty("type_src")?, p.list("ne")?, p.num("dim")?);
    let ny: [u32; 4] = std::array::from_fn(|k| ne[k] * if k < dim { 2 } else { 1 });
    let y = Tensor::new(ty, ny);
    let offset = (0..dim).map(|k| (ny[k] - ne[k]) / 2 * y.stride[k]).sum();
    // As ggml's test has it: the strides of b, so a run of y without gaps.
    let b = Tensor::new(ty, ne);
    let view = Tensor { offset, n_alloc: y.n_alloc, ..b };
    Ok(case(p.to_string(), Set { a: y, b, view, y }, p.flag("inplace")?))
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
    let mut from = vec![None; call.y.n_elem() as usize];
    each(&call.view).for_each(|c| from[call.view.index(c)] = Some(c));
    let order = Tensor::new(call.y.ty, call.y.ne);
    let buffers = vec![a.input("a"), b.input("b")];
    move_case(
        label,
        move |caps| call.dispatch(caps),
        buffers,
        Output::New(call.y),
        |c| from[order.index(c)].map_or_else(|| a.cell(c), |v| b.cell(v)).to_vec(),
    )
}
