//! Cases of `unary`.

use ggml_format::GgmlType;

use super::{FUNCTIONS, Function, Unary, reference};
use crate::case::Case;
use crate::data::{Data, Output, default_nmse, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

/// Cases that the grid cannot express: inputs near 0, where GELU is rounded; NaN; infinite parameters; more workgroups
/// than one axis of a device's grid; an empty tensor.
pub(super) fn by_hand() -> Vec<Case> {
    let row = |name| Function::find(name).expect("a row of the table");
    let many = Tensor::new(GgmlType::F32, [4_300_001, 1, 1, 1]);
    let none = Tensor::new(GgmlType::F16, [5, 0, 3, 1]);
    let fill = row("fill");
    let mut out = vec![
        case("folded grid".into(), fill, [2.0; 4], fill.range, many, None),
        case("empty".into(), row("relu"), [0.0; 4], row("relu").range, none, Some(none)),
    ];
    let some = |ty| Tensor::new(ty, [67, 5, 1, 1]);
    for f in FUNCTIONS {
        let x = some(GgmlType::F32);
        out.push(case(format!("{} near 0", f.name), f, params(f), f.near(), x, Some(x)));
    }
    let infinite = f32::INFINITY;
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::BF16] {
        let x = some(ty);
        for [low, high] in [[0.25, infinite], [-infinite, 0.25], [-infinite, infinite]] {
            let (f, label) = (row("clamp"), format!("clamp {} {low} {high}", ty.name()));
            out.push(case(label, f, [low, high, 0.0, 0.0], f.range, x, Some(x)));
        }
        out.push(case(format!("fill {} -inf", ty.name()), fill, [-infinite; 4], fill.range, x, None));
    }
    // f16 values whose halves are not f16 values, values between them, and both ends of the rounded range.
    let (gelu, x) = (row("gelu"), some(GgmlType::F32));
    let n = x.n_alloc as i32;
    let tiny: Vec<_> = (0..n).map(|i| (i - n / 2) as f32 * 0.5f32.powi(25)).collect();
    let ends = (0..n).map(|i| (if i % 2 == 0 { 10.0 } else { -10.0 }) * (0.999 + i as f32 * 1e-5)).collect();
    for (what, values) in [("tiny values", tiny), ("both ends", ends)] {
        out.push(of_data(format!("gelu of {what}"), gelu, [0.0; 4], Data::of(x, &values, 1), Some(x)));
    }
    for name in ["tanh", "sigmoid", "gelu", "gelu_quick", "gelu_erf", "silu", "softplus", "softcap"] {
        let (f, x) = (row(name), some(GgmlType::F32));
        // NaNs as most CPUs produce them, and as NVIDIA's GPUs do.
        let nan = [f32::NAN, f32::from_bits(0x7fff_ffff)];
        let values = (0..x.n_alloc).map(|i| match i % 7 {
            k @ (3 | 5) => nan[k as usize / 4],
            _ => i as f32 * 0.05 - 8.0,
        });
        let data = Data::of(x, &values.collect::<Vec<_>>(), 1);
        out.push(of_data(format!("{name} of NaN"), f, params(f), data, Some(x)));
    }
    out
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let f = p.row(FUNCTIONS.iter().find(|f| f.ggml == p.op), "a row of FUNCTIONS")?;
    let params = match f.name {
        "clamp" => [p.num("min")?, p.num("max")?, 0.0, 0.0],
        "leaky_relu" => [p.num("negative_slope")?, 0.0, 0.0, 0.0],
        "scale" => [p.num("scale")?, p.num("bias")?, 0.0, 0.0],
        "softcap" => [p.num("softcap")?, 1.0 / p.num::<f32>("softcap")?, 0.0, 0.0],
        "fill" => [p.num("c")?, 0.0, 0.0, 0.0],
        _ => XIELU,
    };
    let ne = p.list(if p.has("ne_a") { "ne_a" } else { "ne" })?;
    let ty = p.ty("type")?;
    let x = if p.has("v") && p.flag("v")? {
        Tensor::new(ty, [ne[0] * 3, ne[1] * 2, ne[2] * 5, ne[3] * 4]).slice([0; 4], ne)
    } else {
        Tensor::new(ty, ne)
    };
    let in_place = f.name == "fill" || p.has("inplace") && p.flag("inplace")?;
    Ok(case(p.to_string(), f, params, f.range, x, (!in_place).then(|| Tensor::new(ty, ne))))
}

/// Parameters of xielu for raw values 1, 2 in the file.
const XIELU: [f32; 4] = [1.813_261_7, 2.126_928, 0.5, 1e-6];

pub(super) fn random(rng: &mut Rng) -> Case {
    let f = &FUNCTIONS[rng.below(FUNCTIONS.len() as u32) as usize];
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16, GgmlType::BF16]);
    let ne = random_ne(rng);
    let (x, y) = (random_tensor(rng, ty, ne), random_tensor(rng, ty, ne));
    let y = (rng.below(4) > 0).then_some(y);
    case(format!("random {} {x:?} {y:?}", f.name), f, params(f), f.near(), x, y)
}

/// Parameters for which the function is not trivial.
fn params(f: &Function) -> [f32; 4] {
    match f.name {
        "clamp" => [-0.5, 0.5, 0.0, 0.0],
        _ => XIELU,
    }
}

/// A case of random inputs in a range; without `y` in place.
fn case(
    label: String,
    f: &'static Function,
    params: [f32; 4],
    (low, high): (f32, f32),
    x: Tensor,
    y: Option<Tensor>,
) -> Case {
    of_data(label, f, params, Data::random(x, 1, low, high), y)
}

fn of_data(label: String, f: &'static Function, params: [f32; 4], data: Data, y: Option<Tensor>) -> Case {
    let x = data.tensor;
    let values = reference::unary(f, params, &data);
    let nmse = default_nmse(x.ty);
    let call = move |caps: &_| Unary { f, params, a: y.map(|_| x), y: y.unwrap_or(x) }.dispatch(caps);
    match y {
        Some(y) => value_case(label, call, vec![data.input("a")], Output::New(y), &values, nmse),
        None => value_case(label, call, vec![], Output::InPlace(data), &values, nmse),
    }
}
