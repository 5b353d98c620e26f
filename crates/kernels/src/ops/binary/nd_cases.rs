//! Cases of `binary_nd`.

use ggml_format::GgmlType;

use super::nd::{BinaryNd, FUNCTIONS, NdFunction};
use crate::case::Case;
use crate::data::{Data, Output, default_nmse, each, random_ne, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let f = p.row(FUNCTIONS.iter().find(|f| f.ggml == p.op), "a row of FUNCTIONS")?;
    let (ty, ne, nr): (_, [u32; 4], [u32; 4]) = (p.ty("type")?, p.list("ne")?, p.list("nr")?);
    let tb = if p.has("type_b") { p.ty("type_b")? } else { ty };
    let all = std::array::from_fn(|k| ne[k] * nr[k]);
    let a = Tensor::new(ty, all);
    let (a, b) = if p.flag("src_overlap")? {
        // Two overlapping views of one buffer, two thirds each.
        let part = [ne[0], ne[1], ne[2], 2 * (ne[3] / 3)];
        (a.slice([0; 4], part), a.slice([0, 0, 0, ne[3] / 3], part))
    } else if p.flag("perm1")? {
        (a, Tensor::new(tb, [ne[1], ne[2], ne[0], ne[3]]).permute([1, 2, 0, 3]))
    } else {
        (a, Tensor::new(tb, ne))
    };
    Ok(case(p.to_string(), f, a, b, Some(Tensor::new(ty, a.ne))))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let f = &FUNCTIONS[rng.below(FUNCTIONS.len() as u32) as usize];
    let types = [GgmlType::F32, GgmlType::F16, GgmlType::BF16];
    let (ty, tb) = (rng.pick(&types), rng.pick(&types));
    let ne = random_ne(rng);
    let small =
        ne.map(
            |n| if rng.below(3) == 0 { (1..=n).rev().find(|d| n % d == 0 && *d < n).unwrap_or(1) } else { n },
        );
    let a = random_tensor(rng, ty, ne);
    let b = random_tensor(rng, tb, small);
    let y = (rng.below(4) > 0).then(|| random_tensor(rng, ty, ne));
    case(format!("random {} {a:?} {b:?} {y:?}", f.name), f, a, b, y)
}

/// A case; without `y` it works in place.
fn case(label: String, f: &'static NdFunction, a: Tensor, b: Tensor, y: Option<Tensor>) -> Case {
    // Quotients of small numbers and differences of large products measure the inputs rather than the kernel.
    let (low, high) = if matches!(f.name, "mul" | "div") { (0.9, 1.1) } else { (-1.0, 1.0) };
    let (da, db) = (Data::random(a, 1, low, high), Data::random(b, 2, low, high));
    let values: Vec<f64> = each(&a).map(|c| (f.formula)(da.at(c), db.wrapped(c))).collect();
    let nmse = default_nmse(a.ty);
    let call = move |caps: &_| BinaryNd { f, a: y.map(|_| a), b, y: y.unwrap_or(a) }.dispatch(caps);
    match y {
        Some(y) => value_case(label, call, vec![da.input("a"), db.input("b")], Output::New(y), &values, nmse),
        None => value_case(label, call, vec![db.input("b")], Output::InPlace(da), &values, nmse),
    }
}
