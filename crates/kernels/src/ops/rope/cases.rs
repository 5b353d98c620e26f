//! Cases of `rope`.

use ggml_format::GgmlType;

use super::{Mode, RopeNd, reference};
use crate::case::{Case, CaseBuffer};
use crate::data::{Data, Output, default_nmse, random_tensor, value_case};
use crate::grid::{GridError, Params};
use crate::rng::Rng;
use crate::tensor::Tensor;
use chaski_graph::{Rope, RopePairing};

/// Positions of long contexts.
pub(super) fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for mode in Mode::ALL {
        for n_pos in [131_072, 1_000_000] {
            let ne = [64, 3, 5, 2];
            let n_dims = if mode == Mode::Vision { 32 } else { 64 };
            let y = Tensor::new(GgmlType::F32, ne);
            let call = call(mode, n_dims, Some(y), y, n_pos);
            out.push(case(format!("{mode:?} positions to {n_pos}"), call, plain(n_dims), 2e-12));
        }
    }
    for mode in [Mode::Mrope, Mode::Imrope] {
        for sections in [[11, 11, 10, 0], [3, 20, 4, 5]] {
            out.push(shifted(mode, sections));
        }
    }
    out
}

/// Positions with shifts, as the step of a model has them: the fourth section follows the first component.
fn shifted(mode: Mode, sections: [u32; 4]) -> Case {
    let (y, n_token, stride, n_pos) = (Tensor::new(GgmlType::F32, [64, 3, 5, 1]), 5, 4, 3000);
    let at = stride * n_token + 7;
    let mut words = vec![0u32; (at + 3 * n_token) as usize];
    let mut four = vec![0f32; 4 * n_token as usize];
    let mut rng = Rng::new(3);
    for token in 0..n_token {
        let pos = rng.below(n_pos);
        words[(stride * token) as usize] = pos;
        for k in 0..3 {
            let component = rng.below(n_pos);
            words[(at + 3 * token + k) as usize] = component.wrapping_sub(pos);
            four[(token + k * n_token) as usize] = component as f32;
        }
        four[(token + 3 * n_token) as usize] = four[token as usize];
    }
    let whole = stride * n_token;
    let pos = Tensor {
        ne: [n_token, 1, 1, 1],
        stride: [stride, whole, whole, whole],
        n_alloc: words.len() as u32,
        ..Tensor::new(GgmlType::I32, [n_token, 1, 1, 1])
    };
    let of_four = RopeNd { sections, ..call(mode, 64, Some(y), y, n_pos) };
    let call = RopeNd { pos, shifts: Some(at), ..of_four };
    let (params, data) = (plain(64), Data::random(y, 1, -1.0, 1.0));
    let values = reference::all(&of_four, &params, &data, &Data::of(of_four.pos, &four, 0));
    let buffers = vec![
        CaseBuffer::input("pos", &words),
        CaseBuffer::input("rope", &call.tables(&params)),
        data.input("a"),
    ];
    let label = format!("{mode:?} {sections:?} shifts");
    value_case(label, move |caps| call.dispatch(caps), buffers, Output::New(y), &values, 2e-12)
}

fn plain(n_dims: u32) -> Rope {
    Rope { beta_fast: 1.0, beta_slow: 1.0, ..Rope::plain(n_dims, RopePairing::Norm, 10_000.0) }
}

/// Sections as in ggml's test: thirds, and halves of half for images.
fn call(mode: Mode, n_dims: u32, a: Option<Tensor>, y: Tensor, n_pos: u32) -> RopeNd {
    let sections = match mode {
        Mode::Vision => [n_dims / 2, n_dims / 2, 0, 0],
        _ => [n_dims / 3, n_dims / 3, n_dims / 3, 0],
    };
    let n = y.ne[2] * if mode.has_sections() { 4 } else { 1 };
    let pos = Tensor::new(GgmlType::I32, [n, 1, 1, 1]);
    RopeNd { mode, n_dims, first: 0, sections, a, pos, shifts: None, n_pos, y }
}

pub(super) fn of(p: &Params) -> Result<Case, GridError> {
    let (ne, ty) = (p.list::<4>("ne_a")?, p.ty("type")?);
    let mode = p.row(Mode::from_ggml(p.num("mode")?), "one of ggml's modes")?;
    let a = match p.num("v")? {
        0 => Tensor::new(ty, ne),
        1 => Tensor::new(ty, [ne[0] * 2, ne[1] * 4, ne[2] + 1, ne[3]]).slice([0; 4], ne),
        // Heads of a fused QKV product.
        _ => Tensor::new(ty, [ne[0], ne[1] * 3, ne[2], ne[3]]).slice([0, ne[1], 0, 0], ne),
    };
    let in_place = p.flag("inplace")?;
    let y = if in_place { a } else { Tensor::new(ty, ne) };
    let mut n_dims: u32 = p.num("n_dims")?;
    if mode == Mode::Vision {
        // ggml's test gives the number of rotated channels.
        n_dims /= 2;
    }
    let mut call = call(mode, n_dims, (!in_place).then_some(a), y, p.num("n_ctx")?);
    call.first = p.num("n_offs")?;
    let (scale, ext): (f64, f64) = (p.num("fs")?, p.num("ef")?);
    let mut magnitude: f64 = p.num("af")?;
    if ext != 0.0 {
        magnitude *= 1.0 + 0.1 * (1.0 / scale).ln();
    }
    let mut params = Rope { freq_scale: scale, ext_factor: ext, magnitude, ..plain(n_dims) };
    if p.flag("ff")? {
        let mut rng = Rng::new(9);
        params.factors = Some((0..mode.n_pair(n_dims)).map(|_| rng.range(0.9, 1.1)).collect());
    }
    Ok(case(p.to_string(), call, params, default_nmse(ty)))
}

pub(super) fn random(rng: &mut Rng) -> Case {
    let mode = rng.pick(&Mode::ALL);
    let ne = [8 * (1 + rng.below(16)), 1 + rng.below(5), 1 + rng.below(5), 1 + rng.below(3)];
    let ty = rng.pick(&[GgmlType::F32, GgmlType::F16]);
    let a = random_tensor(rng, ty, ne);
    let y = if ty == GgmlType::F32 { random_tensor(rng, ty, ne) } else { Tensor::new(ty, ne) };
    let a = (rng.below(3) > 0).then_some(a);
    let n_dims = if mode == Mode::Vision { ne[0] / 2 } else { 2 + 2 * rng.below(ne[0] / 2) };
    let mut call = call(mode, n_dims, a, y, 300 + rng.below(5000));
    call.first = rng.below(ne[0] - 2 * mode.n_pair(n_dims) + 1);
    if mode.has_sections() {
        call.sections = [1 + rng.below(9), rng.below(9), rng.below(9), rng.below(9)];
    }
    case(format!("random {call:?}"), call, plain(n_dims), default_nmse(ty))
}

fn case(label: String, call: RopeNd, params: Rope, max_nmse: f64) -> Case {
    let data = Data::random(call.a.unwrap_or(call.y), 1, -1.0, 1.0);
    let mut rng = Rng::new(2);
    let mut pos: Vec<f32> = (0..call.pos.n_alloc).map(|_| rng.below(call.n_pos) as f32).collect();
    // f32 represents every integer up to 2^24.
    pos[0] = (call.n_pos - 1) as f32;
    let pos = Data::of(call.pos, &pos, 0);
    let values = reference::all(&call, &params, &data, &pos);
    let mut buffers = vec![pos.input("pos"), CaseBuffer::input("rope", &call.tables(&params))];
    if call.a.is_some() {
        buffers.push(data.input("a"));
    }
    let y = if call.a.is_some() { Output::New(call.y) } else { Output::InPlace(data) };
    value_case(label, move |caps| call.dispatch(caps), buffers, y, &values, max_nmse)
}
