//! Cases of `concat`.

use ggml_format::GgmlType;

use super::Concat;
use crate::case::Case;
use crate::data::{Data, Output, move_case, random_ne, random_tensor};
use crate::format::FORMATS;
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Empty parts, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let mut out = Vec::new();
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0] {
        for dim in 0..3 {
            let [none, some] = [0, 32].map(|n| {
                let mut ne = [64, 3, 2, 1];
                ne[dim] = n;
                Tensor::new(ty, ne)
            });
            for (which, a, b) in [("a", none, some), ("b", some, none)] {
                out.push(case(format!("empty {which} {some:?} {dim}"), Concat { a, b, y: some, dim }));
            }
        }
    }
    out
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ty, ne, dim): (_, [u32; 4], usize) = (p.ty("type")?, p.list("ne_a")?, p.num("dim")?);
    let v: u32 = p.num("v")?;
    let mut ne_b = ne;
    ne_b[dim] = p.num("ne_b_d")?;
    // Bits 0 and 1: a and b are parts of larger tensors; bits 2 and 3: their axes 1 and 2 are permuted.
    let part = |ne: [u32; 4], bit: u32, grow: [u32; 4]| {
        if v >> bit & 1 == 1 {
            Tensor::new(ty, std::array::from_fn(|k| ne[k] * grow[k])).slice([0; 4], ne)
        } else if v >> (bit + 2) & 1 == 1 {
            Tensor::new(ty, [ne[0], ne[2], ne[1], ne[3]]).permute([0, 2, 1, 3])
        } else {
            Tensor::new(ty, ne)
        }
    };
    let (a, b) = (part(ne, 0, [2, 4, 3, 1]), part(ne_b, 1, [3, 2, 4, 1]));
    let mut ny = ne;
    ny[dim] += ne_b[dim];
    Ok(case(p.to_string(), Concat { a, b, y: Tensor::new(ty, ny), dim }))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let plain = [GgmlType::F32, GgmlType::F16, GgmlType::I8, GgmlType::I64];
    let ty = if rng.below(3) == 0 {
        FORMATS[rng.below(FORMATS.len() as u32) as usize].ty
    } else {
        rng.pick(&plain)
    };
    let block = ty.block_len() as u32;
    let mut na = random_ne(rng);
    if block > 1 {
        na[0] = block * (1 + na[0] % 3);
    }
    let dim = rng.below(4) as usize;
    let (mut nb, mut ny) = (na, na);
    nb[dim] = (1 + rng.below(9)) * if dim == 0 { block } else { 1 };
    ny[dim] += nb[dim];
    let call = Concat {
        a: random_tensor(rng, ty, na),
        b: random_tensor(rng, ty, nb),
        y: random_tensor(rng, ty, ny),
        dim,
    };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: Concat) -> Case {
    let (a, b) = (Data::random(call.a, 1, -100.0, 100.0), Data::random(call.b, 2, -100.0, 100.0));
    let na = call.a.cells().ne[call.dim];
    let buffers = vec![a.input("a"), b.input("b")];
    move_case(
        label,
        move |caps| call.dispatch(caps),
        buffers,
        Output::New(call.y),
        |mut c| {
            if c[call.dim] < na {
                return a.cell(c).to_vec();
            }
            c[call.dim] -= na;
            b.cell(c).to_vec()
        },
    )
}
