//! Cases of `gather`.

use ggml_format::GgmlType;

use super::{Gather, ROWS, Row};
use crate::case::Case;
use crate::data::{Data, Output, move_case, random_ne, random_tensor};
use crate::format::FORMATS;
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;

fn row(name: &str) -> &'static Row {
    Row::find(name).expect("a row of the table")
}

/// An empty tensor padded to a non-empty one, which the grid cannot express.
pub(super) fn by_hand() -> Vec<Case> {
    let [a, y] = [[0, 2, 1, 1], [5, 4, 1, 1]].map(|ne| Tensor::new(GgmlType::F32, ne));
    let call = Gather { row: row("pad"), params: [2, 1, 0, 0], fill: 0x7f7f_7f7f, a, y };
    vec![case("empty a".into(), call)]
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let ty = if p.has("type") { p.ty("type")? } else { GgmlType::F32 };
    let new = |ne| Tensor::new(ty, ne);
    let call = |name, params, a, y| Gather { row: row(name), params, fill: 0, a, y };
    let call = match p.op.as_str() {
        "REPEAT" => {
            let (ne, nr): ([u32; 4], [u32; 4]) = (p.list("ne")?, p.list("nr")?);
            call("repeat", [0; 4], new(ne), new(std::array::from_fn(|k| ne[k] * nr[k])))
        }
        "PAD" => {
            let (left, right): ([u32; 4], [u32; 4]) = if p.has("pad_0") {
                ([0; 4], [p.num("pad_0")?, p.num("pad_1")?, 0, 0])
            } else {
                (
                    [p.num("lp0")?, p.num("lp1")?, p.num("lp2")?, p.num("lp3")?],
                    [p.num("rp0")?, p.num("rp1")?, p.num("rp2")?, p.num("rp3")?],
                )
            };
            let ne: [u32; 4] = p.list("ne_a")?;
            // Views that are not contiguous: transposed, or parts of a larger tensor.
            let a = match if p.has("tfrm") { p.num("tfrm")? } else { 0 } {
                0 => new(ne),
                1 => new([ne[1], ne[0], ne[2], ne[3]]).permute([1, 0, 2, 3]),
                _ => new([ne[0] + 3, ne[1], ne[2] + 1, ne[3]]).slice([2, 0, 1, 0], ne),
            };
            let name = if p.flag("circular")? { "wrap" } else { "pad" };
            let y = new(std::array::from_fn(|k| left[k] + ne[k] + right[k]));
            call(name, left.map(|n| n as i32), a, y)
        }
        "ROLL" => {
            let a = new([10, 5, 4, 3]);
            let a = if p.flag("permute")? { a.permute([0, 3, 1, 2]) } else { a };
            let shift = [p.num("shift0")?, p.num("shift1")?, p.num("shift3")?, p.num("shift4")?];
            call("wrap", shift, a, new(a.ne))
        }
        "PAD_REFLECT_1D" => {
            let ne: [u32; 4] = p.list("ne_a")?;
            let (left, right): (u32, u32) = (p.num("pad_0")?, p.num("pad_1")?);
            let y = new([left + ne[0] + right, ne[1], ne[2], ne[3]]);
            call("pad_reflect_1d", [left as i32, 0, 0, 0], new(ne), y)
        }
        "DIAG" => {
            let ne: [u32; 4] = p.list("ne")?;
            call("diag", [0; 4], new(ne), new([ne[0], ne[0], ne[2], ne[3]]))
        }
        "TRI" => call("tri", [p.num("tri_type")?, 0, 0, 0], new(p.list("ne")?), new(p.list("ne")?)),
        "DIAG_MASK_INF" => {
            let masked =
                call("diag_mask", [p.num("n_past")?, 0, 0, 0], new(p.list("ne")?), new(p.list("ne")?));
            Gather { fill: f32::NEG_INFINITY.to_bits(), ..masked }
        }
        _ => return Err(p.row(None::<GridError>, "a row of ROWS").expect_err("no such row")),
    };
    Ok(case(p.to_string(), call))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let row = &ROWS[rng.below(ROWS.len() as u32) as usize];
    let mut types =
        vec![GgmlType::F32, GgmlType::F16, GgmlType::BF16, GgmlType::I8, GgmlType::I64, GgmlType::I32];
    let mut ne = random_ne(rng);
    let mut small = [0; 4].map(|_| rng.below(4));
    let mut ny = ne;
    match row.name {
        "repeat" => {
            ny = std::array::from_fn(|k| ne[k] * (1 + rng.below(3)));
            types.extend(FORMATS.iter().map(|f| f.ty));
        }
        "pad" | "wrap" => ny = std::array::from_fn(|k| ne[k] + small[k] + rng.below(3)),
        "pad_reflect_1d" => {
            ne[0] += 4;
            ny = ne;
            ny[0] += small[0] + rng.below(4);
        }
        "diag" => {
            ne[1] = 1;
            ny = [ne[0], ne[0], ne[2], ne[3]];
        }
        _ => {}
    }
    if row.name == "tri" {
        small = [rng.below(4), 0, 0, 0];
    }
    let ty = rng.pick(&types);
    let block = ty.block_len() as u32;
    ne[0] *= block;
    ny[0] *= block;
    if ty.block_len() > 1 {
        ne[0] = ne[0].min(block * 3);
        ny[0] = ny[0].min(ne[0] * 2) / ne[0] * ne[0];
    }
    let (a, y) = (random_tensor(rng, ty, ne), random_tensor(rng, ty, ny));
    // A pattern that repeats in every unit of a value.
    let fill =
        if block == 1 { 0x7f7f_7f7f & (u64::MAX >> (64 - 8 * ty.block_bytes().min(4))) as u32 } else { 0 };
    let call = Gather { row, params: small.map(|n| n as i32), fill, a, y };
    case(format!("random {call:?}"), call)
}

fn case(label: String, call: Gather) -> Case {
    let a = Data::random(call.a, 1, -100.0, 100.0);
    let na = call.a.cells().ne.map(i64::from);
    let n = call.y.ty.block_bytes();
    let fill: Vec<u8> = call.fill.to_le_bytes().into_iter().cycle().take(n).collect();
    move_case(
        label,
        move |caps| call.dispatch(caps),
        vec![a.input("a")],
        Output::New(call.y),
        |c| {
            let from = (call.row.formula)(c.map(i64::from), na, call.params.map(i64::from));
            from.map_or_else(|| fill.clone(), |s| a.cell(s.map(|v| v as u32)).to_vec())
        },
    )
}
