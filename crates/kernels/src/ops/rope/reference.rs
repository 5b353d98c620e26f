//! Rotation as its formula has it, in f64: angles are products, cosines and sines are taken of them.

use super::Mode;
use crate::data::Data;
use crate::rope::Rope;

/// Which of a token's four positions pair `i` follows, and to which power its frequency is raised.
pub(crate) fn stream(mode: Mode, sections: [u32; 4], i: u32) -> (usize, u32) {
    if matches!(mode, Mode::Normal | Mode::Neox) {
        return (0, i);
    }
    let sector = i % sections.iter().sum::<u32>();
    if mode == Mode::Imrope {
        let k = (sector % 3) as usize;
        return (if sector < 3 * sections[k] { k } else { 3 }, i);
    }
    let starts: [u32; 4] = std::array::from_fn(|k| sections[..k].iter().sum());
    let k = (1..4).rev().find(|k| sector >= starts[*k]).unwrap_or(0);
    (k, if mode == Mode::Vision { sector - starts[k] } else { i })
}

/// Rotates one head. `at(ch)` reads a channel, `pos` are the token's positions.
pub fn rope(mode: Mode, sections: [u32; 4], rope: &Rope, first: u32, head: &mut [f64], pos: [f64; 4]) {
    let n_pair = mode.n_pair(rope.n_rot);
    for i in 0..n_pair {
        let (k, power) = stream(mode, sections, i);
        let (s, c) = (pos[k] * rope.frequency(i, power)).sin_cos();
        let (s, c) = (s * rope.magnitude, c * rope.magnitude);
        let (u, v) = if mode == Mode::Normal { (2 * i, 2 * i + 1) } else { (i, i + n_pair) };
        let (u, v) = ((first + u) as usize, (first + v) as usize);
        (head[u], head[v]) = (head[u] * c - head[v] * s, head[u] * s + head[v] * c);
    }
}

/// All heads of a tensor, in ggml's order.
pub(super) fn all(call: &super::RopeNd, params: &Rope, x: &Data, pos: &Data) -> Vec<f64> {
    let [ne0, ne1, ne2, ne3] = x.tensor.ne;
    let mut out = Vec::new();
    for r in 0..ne1 * ne2 * ne3 {
        let (c1, c2, c3) = (r % ne1, r / ne1 % ne2, r / ne1 / ne2);
        let mut head: Vec<f64> = (0..ne0).map(|c0| x.at([c0, c1, c2, c3])).collect();
        let streams = if call.mode.has_sections() { 4 } else { 1 };
        let pos = std::array::from_fn(|k| pos.at([c2 + (k as u32 % streams) * ne2, 0, 0, 0]));
        rope(call.mode, call.sections, params, call.first, &mut head, pos);
        out.extend(head);
    }
    out
}
