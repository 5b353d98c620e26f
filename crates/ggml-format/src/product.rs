//! Matrix multiplication on the CPU: activations are rounded to 16-bit integers with a scale per 32 values,
//! and integer products are taken with the codes of the weights. Formats without codes are multiplied as f32.

use std::borrow::Cow;

use wide::{f32x4, i16x8, i32x4};

use crate::blocks::codes::Codes;
use crate::types::GgmlType;

/// Values of an activation column that share a scale.
const RUN: usize = 32;
/// The largest magnitude of a rounded value.
const TOP: f32 = 32767.0;
/// Rows whose codes are kept while all columns are multiplied with them, if there are many columns.
const ROWS: usize = 8;
/// Columns multiplied with a row at once, or rows with a column: as many accumulators as fit in registers.
const AT_ONCE: usize = 4;

/// Activations, as columns of `k` values.
#[derive(Debug)]
pub struct Columns<'a> {
    k: usize,
    /// `[n, k]`
    x: &'a [f32],
    rounded: Option<Rounded>,
}

/// Columns as integers: 16 bits and a scale per [`RUN`] are as exact as f32, whose dot products are inexact
/// too.
#[derive(Debug)]
struct Rounded {
    /// `[n, k]`
    code: Vec<i16>,
    /// `[n, k / RUN]`
    scale: Vec<f32>,
    /// Sums of the rounded values per 16 and per 32, for weights with minima.
    sum16: Vec<f32>,
    sum32: Vec<f32>,
}

impl<'a> Columns<'a> {
    /// Contiguous columns of `k` values.
    pub fn new(x: &'a [f32], k: usize) -> Self {
        Columns { k, x, rounded: None }
    }

    /// Number of columns.
    pub fn n(&self) -> usize {
        self.x.len() / self.k.max(1)
    }

    /// The values of the columns.
    pub fn x(&self) -> &'a [f32] {
        self.x
    }

    /// Rounds the columns, unless they are already rounded or the format does not need it.
    pub fn round_for(&mut self, ty: GgmlType) {
        if ty.info().codes.is_some() && self.k % RUN == 0 && self.rounded.is_none() {
            self.rounded = Some(Rounded::of(self.x));
        }
    }

    /// Multiplies with the contiguous rows in `bytes`: `out[r * n + c]`, for as many rows as fit in `out`.
    ///
    /// # Panics
    /// If `bytes` has fewer rows, or the type has no dequantiser.
    pub fn multiply(&self, ty: GgmlType, bytes: &[u8], out: &mut [f32]) {
        let n = self.n();
        let row_bytes = self.k / ty.block_len() * ty.block_bytes();
        let rows = out.len() / n.max(1);
        let bytes = &bytes[..rows * row_bytes];
        match (ty.info().codes, &self.rounded) {
            (Some(codes), Some(x)) => {
                let per_block = if n < AT_ONCE { AT_ONCE } else { ROWS };
                let mut block = Unpacked::new(codes, per_block * self.k);
                for (bytes, out) in bytes.chunks(per_block * row_bytes).zip(out.chunks_mut(per_block * n)) {
                    block.multiply(codes, bytes, self.k, x, out);
                }
            }
            _ => {
                for (bytes, out) in bytes.chunks_exact(row_bytes).zip(out.chunks_exact_mut(n)) {
                    let row = values(ty, bytes, self.k);
                    for (out, x) in out.iter_mut().zip(self.x.chunks_exact(self.k)) {
                        *out = dot(&row, x);
                    }
                }
            }
        }
    }
}

/// A row as f32, borrowed if it is f32 already.
///
/// # Panics
/// If the type has no dequantiser, or `bytes` is not a whole row of `n` values.
pub fn values(ty: GgmlType, bytes: &[u8], n: usize) -> Cow<'_, [f32]> {
    if ty == GgmlType::F32
        && let Ok(values) = bytemuck::try_cast_slice(bytes)
    {
        return Cow::Borrowed(values);
    }
    let mut out = vec![0.0; n];
    (ty.info().dequantize.expect("a weight format"))(bytes, &mut out);
    Cow::Owned(out)
}

impl Rounded {
    fn of(x: &[f32]) -> Self {
        let n_run = x.len() / RUN;
        let mut out = Rounded {
            code: vec![0; x.len()],
            scale: Vec::with_capacity(n_run),
            sum16: Vec::with_capacity(2 * n_run),
            sum32: Vec::with_capacity(n_run),
        };
        for (x, code) in x.as_chunks::<RUN>().0.iter().zip(out.code.as_chunks_mut::<RUN>().0) {
            let x: [f32x4; RUN / 4] = bytemuck::cast(*x);
            let top = x.iter().fold(f32x4::ZERO, |m, v| m.fast_max(v.abs())).to_array();
            let top = top.into_iter().fold(0.0, f32::max);
            // 0 for finite values; an infinity or a NaN makes the scale NaN, and so every product.
            let odd = x.iter().fold(f32x4::ZERO, |m, v| m + *v * f32x4::ZERO).reduce_add();
            let inverse = if top > 0.0 { f32x4::splat(TOP / top) } else { f32x4::ZERO };
            let whole: [[i32; 4]; RUN / 4] = x.map(|v| (v * inverse).fast_round_int().to_array());
            for (c, v) in code.iter_mut().zip(whole.as_flattened()) {
                *c = *v as i16;
            }
            let scale = top / TOP + odd;
            // Infinities and NaN may become any integer, because their scale is NaN anyway.
            let sum = |part: &[[i32; 4]]| {
                part.as_flattened().iter().fold(0, |n: i32, v| n.wrapping_add(*v)) as f32 * scale
            };
            let halves = [sum(&whole[..4]), sum(&whole[4..])];
            out.scale.push(scale);
            out.sum16.extend(halves);
            out.sum32.push(halves[0] + halves[1]);
        }
        out
    }
}

/// Unpacked rows of weights.
struct Unpacked {
    code: Vec<i16>,
    scale: Vec<f32>,
    min: Vec<f32>,
}

impl Unpacked {
    fn new(codes: Codes, n: usize) -> Self {
        let n_group = n / codes.group;
        let n_min = if codes.has_min { n_group } else { 0 };
        Unpacked { code: vec![0; n], scale: vec![0.0; n_group], min: vec![0.0; n_min] }
    }

    /// Multiplies some rows of `k` values with all columns.
    fn multiply(&mut self, codes: Codes, bytes: &[u8], k: usize, x: &Rounded, out: &mut [f32]) {
        let (n, n_run, n_group) = (x.code.len() / k, k / RUN, k / codes.group);
        let rows = out.len() / n;
        let n_min = if codes.has_min { rows * n_group } else { 0 };
        let Unpacked { code, scale, min } = self;
        let (code, scale, min) = (&mut code[..rows * k], &mut scale[..rows * n_group], &mut min[..n_min]);
        (codes.unpack)(bytes, code, scale, min);
        let sums = if codes.group == RUN { &x.sum32 } else { &x.sum16 };
        let column = |c: usize| Runs {
            code: x.code[c * k..][..k].as_chunks().0,
            scale: &x.scale[c * n_run..][..n_run],
        };
        let row = |r: usize| Runs {
            code: code[r * k..][..k].as_chunks().0,
            scale: &scale[r * n_group..][..n_group],
        };
        let mut c = 0;
        while c < n {
            if n - c < AT_ONCE {
                let mut r = 0;
                while r < rows {
                    if rows - r < AT_ONCE {
                        let [[made]] = products(codes.group, [row(r)], [column(c)]);
                        out[r * n + c] = made;
                        r += 1;
                    } else {
                        let rows = std::array::from_fn::<_, AT_ONCE, _>(|i| row(r + i));
                        for [made] in products(codes.group, rows, [column(c)]) {
                            out[r * n + c] = made;
                            r += 1;
                        }
                    }
                }
                c += 1;
            } else {
                let columns = std::array::from_fn::<_, AT_ONCE, _>(|i| column(c + i));
                for r in 0..rows {
                    let [made] = products(codes.group, [row(r)], columns);
                    out[r * n + c..][..AT_ONCE].copy_from_slice(&made);
                }
                c += AT_ONCE;
            }
        }
        if codes.has_min {
            for (out, min) in out.chunks_exact_mut(n).zip(min.chunks_exact(n_group)) {
                for (out, sums) in out.iter_mut().zip(sums.chunks_exact(n_group)) {
                    *out -= dot(min, sums);
                }
            }
        }
    }
}

/// A row or a column: codes, and a scale per [`RUN`] or per group.
#[derive(Clone, Copy)]
struct Runs<'a> {
    code: &'a [[i16; RUN]],
    scale: &'a [f32],
}

/// Products of some rows, whose scales cover groups of 16 or 32 codes, with some columns.
fn products<const R: usize, const C: usize>(
    group: usize,
    rows: [Runs<'_>; R],
    columns: [Runs<'_>; C],
) -> [[f32; C]; R] {
    let mut sums = [[f32x4::ZERO; C]; R];
    let n_run = columns[0].code.len();
    if group == RUN {
        let rows = rows.map(|r| (&r.code[..n_run], &r.scale[..n_run]));
        let columns = columns.map(|c| (&c.code[..n_run], &c.scale[..n_run]));
        for i in 0..n_run {
            for (sums, (w, s)) in sums.iter_mut().zip(rows) {
                let (w, s) = (eights(&w[i]), s[i]);
                for (sum, (v, scale)) in sums.iter_mut().zip(columns) {
                    let v = eights(&v[i]);
                    let whole = (w[0].dot(v[0]) + w[1].dot(v[1])) + (w[2].dot(v[2]) + w[3].dot(v[3]));
                    *sum += whole.round_float() * f32x4::splat(s * scale[i]);
                }
            }
        }
    } else {
        let rows = rows.map(|r| (&r.code[..n_run], &r.scale.as_chunks::<2>().0[..n_run]));
        let columns = columns.map(|c| (&c.code[..n_run], &c.scale[..n_run]));
        for i in 0..n_run {
            for (sums, (w, s)) in sums.iter_mut().zip(rows) {
                let (w, s) = (eights(&w[i]), s[i]);
                for (sum, (v, scale)) in sums.iter_mut().zip(columns) {
                    let v = eights(&v[i]);
                    let halves: [i32x4; 2] =
                        [w[0].dot(v[0]) + w[1].dot(v[1]), w[2].dot(v[2]) + w[3].dot(v[3])];
                    let s = s.map(|s| f32x4::splat(s * scale[i]));
                    *sum += halves[0].round_float() * s[0] + halves[1].round_float() * s[1];
                }
            }
        }
    }
    sums.map(|sums| sums.map(|s| s.reduce_add()))
}

fn eights(run: &[i16; RUN]) -> [i16x8; 4] {
    std::array::from_fn(|i| i16x8::from_slice_unaligned(&run[8 * i..][..8]))
}

/// Dot product in f32.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a16, a_rest) = a.as_chunks::<16>();
    let (b16, b_rest) = b.as_chunks::<16>();
    let mut sums = [f32x4::ZERO; 4];
    for (a, b) in a16.iter().zip(b16) {
        let (a, b): ([f32x4; 4], [f32x4; 4]) = (bytemuck::cast(*a), bytemuck::cast(*b));
        for (sum, (a, b)) in sums.iter_mut().zip(a.into_iter().zip(b)) {
            *sum += a * b;
        }
    }
    let (a4, a_rest) = a_rest.as_chunks::<4>();
    let (b4, b_rest) = b_rest.as_chunks::<4>();
    for (sum, (a, b)) in sums.iter_mut().zip(a4.iter().zip(b4)) {
        *sum += f32x4::from(*a) * f32x4::from(*b);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    ((sums[0] + sums[1]) + (sums[2] + sums[3])).reduce_add() + rest
}

/// `out += p * v`
pub fn add_scaled(out: &mut [f32], p: f32, v: &[f32]) {
    let (out4, rest) = out.as_chunks_mut::<4>();
    let (v4, v_rest) = v.as_chunks::<4>();
    for (o, v) in out4.iter_mut().zip(v4) {
        *o = (f32x4::from(*o) + f32x4::from(*v) * f32x4::splat(p)).to_array();
    }
    rest.iter_mut().zip(v_rest).for_each(|(o, v)| *o += p * v);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::TYPES;

    /// Values between -1 and 1, with some outliers.
    fn noise(n: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..n).map(|i| draw() * if i % 37 == 5 { 40.0 } else { 1.0 }).collect()
    }

    #[test]
    fn products_of_every_format_are_those_of_the_reference() {
        let (k, rows) = (512, 19);
        for info in TYPES {
            let Some(quantize) = info.quantize else { continue };
            let mut bytes = vec![0; rows * k / info.block_len * info.block_bytes];
            let weights = noise(rows * k, 7);
            for (w, out) in
                weights.chunks_exact(k).zip(bytes.chunks_exact_mut(k / info.block_len * info.block_bytes))
            {
                quantize(w, None, out);
            }
            let mut exact = vec![0.0; rows * k];
            info.dequantize.expect("formats with a quantiser have one")(&bytes, &mut exact);
            for n in [1, 3, 4, 9] {
                let x = noise(n * k, 99);
                let mut columns = Columns::new(&x, k);
                columns.round_for(info.ty);
                assert_eq!(columns.rounded.is_some(), info.codes.is_some(), "{}", info.name);
                let mut out = vec![f32::NAN; rows * n];
                columns.multiply(info.ty, &bytes, &mut out);
                for (i, found) in out.iter().enumerate() {
                    let (w, x) = (&exact[i / n * k..][..k], &x[i % n * k..][..k]);
                    let pairs = w.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b));
                    let exact: f64 = pairs.clone().sum();
                    // Half a step of each activation, plus the rounding error of f32 sums.
                    let half_step = |x: &[f32]| x.iter().fold(0.0f32, |m, v| m.max(v.abs())) / TOP / 2.0;
                    let runs = w.chunks_exact(RUN).zip(x.chunks_exact(RUN));
                    let rounded = runs.map(|(w, x)| half_step(x) * w.iter().map(|w| w.abs()).sum::<f32>());
                    let rounded: f32 = if info.codes.is_some() { rounded.sum() } else { 0.0 };
                    let bound = f64::from(rounded) * 1.01 + 1e-6 * pairs.map(f64::abs).sum::<f64>();
                    let error = (f64::from(*found) - exact).abs();
                    assert!(error <= bound, "{}, {n} columns, value {i}: off by {error:e}", info.name);
                }
            }
        }
    }

    #[test]
    fn the_largest_codes_do_not_overflow() {
        let k = 64;
        let mut bytes = vec![0x80; 2 * 34];
        // All scales 1.
        for block in bytes.chunks_exact_mut(34) {
            block[..2].copy_from_slice(&[0, 0x3c]);
        }
        let x = vec![-3.0; k];
        let mut columns = Columns::new(&x, k);
        columns.round_for(GgmlType::Q8_0);
        let mut out = [0.0];
        columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
        assert_eq!(out[0], 64.0 * 3.0 * 128.0);
    }

    #[test]
    fn inputs_that_are_not_finite_are_seen() {
        let bytes = vec![1; 2 * 34];
        for odd in [f32::NAN, f32::INFINITY] {
            let mut one = vec![1.0; 64];
            one[40] = odd;
            for x in [one, vec![odd; 64]] {
                let mut columns = Columns::new(&x, 64);
                columns.round_for(GgmlType::Q8_0);
                let mut out = [0.0];
                columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
                assert!(out[0].is_nan(), "{}", out[0]);
            }
        }
        let zeros = vec![0.0; 64];
        let mut columns = Columns::new(&zeros, 64);
        columns.round_for(GgmlType::Q8_0);
        let mut out = [1.0];
        columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
        assert_eq!(out[0], 0.0);
    }
}
