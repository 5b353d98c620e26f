//! Activations in the layout of the products: rounded to 16-bit integers with a scale per run of 32 values, or as they
//! are; in panels of as many columns as a vector has lanes, or single columns.

use wide::f32x4;

use super::lanes::RUN;

/// The largest magnitude of a rounded value.
pub(super) const TOP: f32 = 32767.0;

/// Some columns.
#[derive(Debug)]
pub struct Part {
    /// The first column.
    pub(super) first: usize,
    /// Columns, at most [`Self::lanes`].
    pub(super) n: usize,
    /// Columns that are interleaved: lanes of a vector, or 1.
    pub(super) lanes: usize,
    pub(super) data: Data,
}

/// Values of a part; columns that are not there are 0.
#[derive(Debug)]
pub(super) enum Data {
    /// Activations as integers: 16 bits and a scale per run are as exact as f32, whose dot products are inexact, too.
    Rounded(Rounded),
    /// The same of a single column, for products of tiles.
    #[cfg(not(target_arch = "wasm32"))]
    Runs(Vec<Run>),
    /// `[k, lanes]`
    Plain(Vec<f32>),
}

#[derive(Debug)]
pub(super) struct Rounded {
    /// `[k / 2, lanes]` pairs
    pub(super) code: Vec<i32>,
    /// `[k / RUN, lanes]`
    pub(super) scale: Vec<f32>,
    /// `[k / 16, lanes]`, `[k / 32, lanes]`: sums of the rounded values, for weights with minima.
    pub(super) sums: [Vec<f32>; 2],
}

/// Order of four codes in the bytes of a word: the even bytes are the first two, so that the bytes of each kind are a
/// pair.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const QUAD_ORDER: [usize; 4] = [0, 2, 1, 3];

/// A run of a column.
#[cfg(not(target_arch = "wasm32"))]
#[repr(align(32))]
#[derive(Copy, Clone, Debug)]
pub(super) struct Run {
    /// Four values each: the first and the last two, or the high and the low bytes in [`QUAD_ORDER`].
    pub(super) quads: [[i32; 2]; RUN / 4],
    pub(super) scale: f32,
    /// Sums of both halves.
    pub(super) sums: [f32; 2],
    /// The same of the integers, and of their high bytes.
    pub(super) whole: [i32; 2],
    pub(super) high: [i32; 2],
}

#[cfg(not(target_arch = "wasm32"))]
impl Run {
    /// A run, its quads in bytes if `in_bytes`.
    pub(super) fn new(x: &[f32; RUN], in_bytes: bool) -> Run {
        let (code, scale, whole) = round(x);
        let quads = code.as_chunks::<4>().0;
        let quads: [[i32; 2]; RUN / 4] = std::array::from_fn(|i| match in_bytes {
            true => {
                let bytes = QUAD_ORDER.map(|j| quads[i][j].to_le_bytes());
                [1, 0].map(|b| i32::from_le_bytes(bytes.map(|value| value[b])))
            }
            false => bytemuck::cast(quads[i]),
        });
        let high = [0, 1].map(|half| code[16 * half..][..16].iter().map(|c| i32::from(c >> 8)).sum());
        Run { quads, scale, sums: whole.map(|n| n as f32 * scale), whole, high }
    }
}

/// The columns of each part of `n` columns: panels of `lanes`, and few columns at the end one by one, because a panel
/// takes as long as the products of a quarter of its columns.
pub(super) fn division(n: usize, lanes: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let rest = n % lanes;
    let panels = n / lanes + usize::from(4 * rest > lanes);
    let panels = (0..panels).map(move |i| (i * lanes, lanes.min(n - i * lanes), lanes));
    let singles = if 4 * rest > lanes { 0 } else { rest };
    panels.chain((n - singles..n).map(|c| (c, 1, 1)))
}

impl Part {
    /// `x`: `[n, k]`, the columns of the part.
    pub(super) fn new((first, n, lanes): (usize, usize, usize), x: &[f32], k: usize, rounded: bool) -> Self {
        let columns = x.chunks_exact(k.max(1)).enumerate();
        let data = if rounded {
            let mut to = Rounded::new(k, lanes);
            columns.for_each(|(lane, x)| to.put(lane, lanes, x));
            Data::Rounded(to)
        } else {
            let mut to = vec![0.0; k * lanes];
            for (lane, x) in columns {
                to[lane..].iter_mut().step_by(lanes).zip(x).for_each(|(to, x)| *to = *x);
            }
            Data::Plain(to)
        };
        Part { first, n, lanes, data }
    }
}

impl Rounded {
    fn new(k: usize, lanes: usize) -> Self {
        let zeros = |per: usize| vec![0.0; k / per * lanes];
        Rounded { code: vec![0; k / 2 * lanes], scale: zeros(RUN), sums: [zeros(16), zeros(32)] }
    }

    /// Rounds a column into a lane.
    fn put(&mut self, lane: usize, lanes: usize, x: &[f32]) {
        for (i, x) in x.as_chunks::<RUN>().0.iter().enumerate() {
            let (code, scale, whole) = round(x);
            let halves = whole.map(|n| n as f32 * scale);
            let pairs: [i32; RUN / 2] = bytemuck::cast(code);
            for (to, pair) in self.code[i * RUN / 2 * lanes + lane..].iter_mut().step_by(lanes).zip(pairs) {
                *to = pair;
            }
            self.scale[i * lanes + lane] = scale;
            self.sums[0][2 * i * lanes + lane] = halves[0];
            self.sums[0][(2 * i + 1) * lanes + lane] = halves[1];
            self.sums[1][i * lanes + lane] = halves[0] + halves[1];
        }
    }
}

/// A run as integers, their scale, and the sums of both halves as integers.
fn round(x: &[f32; RUN]) -> ([i16; RUN], f32, [i32; 2]) {
    let x: [f32x4; RUN / 4] = bytemuck::cast(*x);
    let top = x.iter().fold(f32x4::ZERO, |m, v| m.fast_max(v.abs())).to_array();
    let top = top.into_iter().fold(0.0, f32::max);
    // 0 for finite values; an infinity or a NaN makes the scale NaN, and so every product.
    let odd = x.iter().fold(f32x4::ZERO, |m, v| m + *v * f32x4::ZERO).reduce_add();
    let inverse = if top > 0.0 { f32x4::splat(TOP / top) } else { f32x4::ZERO };
    let whole: [[i32; 4]; RUN / 4] = x.map(|v| (v * inverse).fast_round_int().to_array());
    let mut code = [0; RUN];
    for (c, v) in code.iter_mut().zip(whole.as_flattened()) {
        *c = *v as i16;
    }
    let scale = top / TOP + odd;
    // Infinities and NaN may become any integer, because their scale is NaN anyway.
    let sum = |part: &[[i32; 4]]| part.as_flattened().iter().fold(0, |n: i32, v| n.wrapping_add(*v));
    (code, scale, [sum(&whole[..4]), sum(&whole[4..])])
}
