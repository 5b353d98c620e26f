//! RoPE by its formula, in f64, without tables.

use super::Mode;
use crate::data::Data;
use chaski_graph::{Rope, turn};

/// Applies RoPE to one head. `at(ch)` reads a channel, `pos` are the token's positions.
pub fn rope(mode: Mode, sections: [u32; 4], rope: &Rope, first: u32, head: &mut [f64], pos: [f64; 4]) {
    let n_pair = mode.n_pair(rope.n_rot);
    for i in 0..n_pair {
        let (k, power) = mode.stream(sections, i);
        let (u, v) = if mode == Mode::Normal { (2 * i, 2 * i + 1) } else { (i, i + n_pair) };
        let (u, v) = ((first + u) as usize, (first + v) as usize);
        let angle = pos[k] * rope.frequency(i, power);
        (head[u], head[v]) = turn([head[u], head[v]], angle, rope.magnitude);
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
