//! Cases of `mul_mat_nd`.

use ggml_format::GgmlType;

use super::nd::{INPUTS, MulMatNd};
use crate::caps::Caps;
use crate::case::Case;
use crate::data::{Data, Output, each, random_tensor, value_case};
use crate::dispatch::Step;
use crate::format::FORMATS;
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// f32 sums; ggml allows 5e-4.
const MAX_NMSE: f64 = 1e-9;

/// Every format, with partial tiles and broadcast matrices.
pub(super) fn cases() -> Vec<Case> {
    let of = |ty: GgmlType, b| {
        let k = if ty.block_len() == 1 { 37 } else { 2 * ty.block_len() as u32 };
        let call = call(ty, b, [k, 35, 2, 1], [k, 41, 2, 3]);
        case(format!("{} {} 35x41x{k}", ty.name(), b.name()), call, false)
    };
    FORMATS.iter().enumerate().map(|(i, f)| of(f.ty, INPUTS[i % 3])).collect()
}

/// Contiguous tensors of these types and sizes.
fn call(ty_a: GgmlType, ty_b: GgmlType, a: [u32; 4], b: [u32; 4]) -> MulMatNd {
    MulMatNd {
        a: Tensor::new(ty_a, a),
        b: Tensor::new(ty_b, b),
        y: Tensor::new(GgmlType::F32, [a[1], b[1], b[2], b[3]]),
    }
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let [m, n, k]: [u32; 3] = [p.num("m")?, p.num("n")?, p.num("k")?];
    let (bs, nr) = (p.list::<2>("bs")?, p.list::<2>("nr")?);
    let ne_a = [k, m, bs[0], bs[1]];
    let ne_b = [k, n, bs[0] * nr[0], bs[1] * nr[1]];
    let mut call = call(p.ty("type_a")?, p.ty("type_b")?, ne_a, ne_b);
    // Order of the buffer's axes; each order is its own inverse.
    let per = p.list::<4>("per")?.map(|k| k as usize);
    for t in [&mut call.a, &mut call.b] {
        *t = Tensor::new(t.ty, per.map(|k| t.ne[k])).permute(per);
    }
    let (k_v, m_v, pad): (u32, u32, u32) = (p.num("k_v")?, p.num("m_v")?, p.num("pad")?);
    if k_v > 0 {
        for t in [&mut call.a, &mut call.b] {
            *t = Tensor::new(t.ty, [k_v, t.ne[1], t.ne[2], t.ne[3]]).slice([0; 4], t.ne);
        }
    }
    if m_v > 0 {
        // Padding between the matrices, and between their rows.
        call.a = Tensor::new(call.a.ty, [k + pad, m_v, bs[0], bs[1]]).slice([0; 4], ne_a);
    }
    let overlap = p.flag("src_overlap")?;
    if overlap {
        // b starts inside a.
        let at = call.a.n_alloc / 2;
        let n_alloc = at + call.b.n_alloc;
        call.a.n_alloc = n_alloc;
        call.b = Tensor { offset: at, n_alloc, ..call.b };
    }
    Ok(case(p.to_string(), call, overlap))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let ty = if rng.below(2) == 0 {
        FORMATS[rng.below(FORMATS.len() as u32) as usize].ty
    } else {
        rng.pick(&INPUTS)
    };
    let block = ty.block_len() as u32;
    let k = block * (1 + rng.below(if block > 1 { 3 } else { 70 }));
    let [m, n, b2, b3, n2, n3] = [70, 70, 3, 3, 3, 3].map(|most| 1 + rng.below(most));
    let ty_b = rng.pick(&INPUTS);
    let call = MulMatNd {
        a: random_tensor(rng, ty, [k, m, b2, b3]),
        b: random_tensor(rng, ty_b, [k, n, b2 * n2, b3 * n3]),
        y: random_tensor(rng, GgmlType::F32, [m, n, b2 * n2, b3 * n3]),
    };
    case(format!("random {call:?}"), call, false)
}

/// With `overlap`, a and b are views of one buffer.
fn case(label: String, call: MulMatNd, overlap: bool) -> Case {
    let MulMatNd { a, b, y } = call;
    let data = Data::random(a, 1, -1.0, 1.0);
    let (inputs, renamed): (Data, &[_]) = match overlap {
        true => (Data::new(b, data.bytes.clone()), &[("b", "a")]),
        false => (Data::random(b, 2, -1.0, 1.0), &[]),
    };
    let mut buffers = vec![data.input("a")];
    if !overlap {
        buffers.push(inputs.input("b"));
    }
    let repeats = [b.ne[2] / a.ne[2], b.ne[3] / a.ne[3]];
    let values: Vec<f64> = each(&y)
        .map(|[m, n, z, w]| {
            let of_a = [0, m, z / repeats[0], w / repeats[1]];
            let product = |k| data.at([k, of_a[1], of_a[2], of_a[3]]) * inputs.at([k, n, z, w]);
            (0..a.ne[0]).map(product).sum()
        })
        .collect();
    let steps = move |caps: &Caps| Ok(vec![Step::renamed(call.dispatch(caps)?, renamed)]);
    let n_flop = 2 * u64::from(y.n_elem()) * u64::from(a.ne[0]);
    value_case(label, steps, buffers, Output::New(y), &values, MAX_NMSE).work(n_flop)
}
