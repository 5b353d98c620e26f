//! Matrix multiplication on the CPU: activations are rounded to 16-bit integers with a scale per 32 values,
//! and integer products are taken with the codes of the weights. Formats without codes are multiplied as f32.
//!
//! The same code is compiled for several instruction sets, and the best that the CPU has is used ([`Isa`]).

mod activations;
mod kernels;
mod lanes;
mod portable;
mod vectors;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::borrow::Cow;

pub use activations::Part;
use activations::{Data, division};
use kernels::Job;
use lanes::{Lanes, RUN};
use portable::Portable;
pub use vectors::{add_weighted, exp_of_scores, swiglu};

pub use crate::blocks::isa::Isa;
use crate::types::GgmlType;

/// Activations, as columns of `k` values.
#[derive(Debug)]
pub struct Columns<'a> {
    isa: Isa,
    k: usize,
    /// `[n, k]`
    x: &'a [f32],
    /// As integers, and as they are.
    rounded: Vec<Part>,
    plain: Vec<Part>,
}

impl<'a> Columns<'a> {
    /// Contiguous columns of `k` values.
    pub fn new(x: &'a [f32], k: usize) -> Self {
        Columns::for_isa(Isa::best(), x, k)
    }

    /// As [`Self::new`], for products by an instruction set of [`Isa::all`].
    ///
    /// # Panics
    /// If the CPU does not have it.
    pub fn for_isa(isa: Isa, x: &'a [f32], k: usize) -> Self {
        assert!(isa == Isa::Portable || Isa::all().any(|i| i == isa), "the CPU lacks the instructions");
        Columns { isa, k, x, rounded: Vec::new(), plain: Vec::new() }
    }

    /// Number of columns.
    pub fn n(&self) -> usize {
        self.x.len() / self.k.max(1)
    }

    /// The values of the columns.
    pub fn x(&self) -> &'a [f32] {
        self.x
    }

    /// True if products with this type round the columns.
    fn rounds(&self, ty: GgmlType) -> bool {
        ty.info().codes.is_some() && self.k % RUN == 0
    }

    fn parts(&self, ty: GgmlType) -> &[Part] {
        if self.rounds(ty) { &self.rounded } else { &self.plain }
    }

    /// Number of parts to prepare for products with this type, in any order or in parallel; 0 if they are prepared.
    pub fn unprepared(&self, ty: GgmlType) -> usize {
        if self.parts(ty).is_empty() { self.division().count() } else { 0 }
    }

    fn division(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let lanes = match self.isa {
            Isa::Portable => Portable::N,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => x86::Avx2::N,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => x86::Avx512::N,
        };
        division(self.n(), lanes)
    }

    /// Prepares a part.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn part(&self, ty: GgmlType, i: usize) -> Part {
        let (first, n, lanes) = self.division().nth(i).expect("a part of the columns");
        Part::new((first, n, lanes), &self.x[first * self.k..][..n * self.k], self.k, self.rounds(ty))
    }

    /// Takes all parts, in order.
    pub fn set_parts(&mut self, ty: GgmlType, parts: Vec<Part>) {
        *if self.rounds(ty) { &mut self.rounded } else { &mut self.plain } = parts;
    }

    /// Prepares all parts, unless they are prepared.
    pub fn prepare(&mut self, ty: GgmlType) {
        let n = self.unprepared(ty);
        if n > 0 {
            self.set_parts(ty, (0..n).map(|i| self.part(ty, i)).collect());
        }
    }

    /// Multiplies with the contiguous rows in `bytes`: `out[r * n + c]`, for as many rows as fit in `out`. The columns are
    /// prepared for the type.
    ///
    /// # Panics
    /// If `bytes` has fewer rows, the type has no dequantiser, or the columns are not prepared.
    pub fn multiply(&self, ty: GgmlType, bytes: &[u8], out: &mut [f32]) {
        let info = ty.info();
        self.multiply_every(ty, bytes, self.k / info.block_len * info.block_bytes, out);
    }

    /// As [`Self::multiply`], with a row every `stride` bytes.
    ///
    /// # Panics
    /// As [`Self::multiply`].
    #[allow(unsafe_code, reason = "kernels of other instruction sets")]
    pub fn multiply_every(&self, ty: GgmlType, bytes: &[u8], stride: usize, out: &mut [f32]) {
        if out.is_empty() {
            return;
        }
        let (info, n) = (ty.info(), self.n());
        assert!(self.unprepared(ty) == 0, "the columns are not prepared");
        let parts = self.parts(ty);
        let job = Job { bytes, stride, block: (info.block_len, info.block_bytes), k: self.k, parts, n, out };
        let rounded = parts.iter().all(|p| matches!(p.data, Data::Rounded(_)));
        if let Some(codes) = info.codes.filter(|_| rounded) {
            let unpack = codes.compiled.get(self.isa).unwrap_or(codes.chunk);
            match self.isa {
                Isa::Portable => kernels::coded::<_, 4>(Portable, codes, unpack, job),
                // SAFETY: The CPU has the instruction set.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => unsafe { x86::coded_avx2(codes, unpack, job) },
                // SAFETY: The CPU has the instruction set.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => unsafe { x86::coded_avx512(codes, unpack, job) },
            }
        } else {
            let portable = info.dequantize.expect("a weight format");
            let dequantize = info.compiled.get(self.isa).unwrap_or(portable);
            match self.isa {
                Isa::Portable => kernels::plain::<_, 4>(Portable, dequantize, job),
                // SAFETY: The CPU has the instruction set.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => unsafe { x86::plain_avx2(dequantize, job) },
                // SAFETY: The CPU has the instruction set.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => unsafe { x86::plain_avx512(dequantize, job) },
            }
        }
    }
}

/// Rows of `n` values as f32, one every `stride` bytes, as many as fit in `out`.
///
/// # Panics
/// If the type has no dequantiser, or `bytes` has fewer rows.
#[allow(unsafe_code, reason = "instruction sets that the CPU has")]
pub fn values_every(ty: GgmlType, bytes: &[u8], stride: usize, n: usize, out: &mut [f32]) {
    let info = ty.info();
    let row_bytes = n / info.block_len * info.block_bytes;
    let portable = info.dequantize.expect("a weight format");
    let compiled = info.compiled.get(Isa::best());
    for (r, out) in out.chunks_exact_mut(n).enumerate() {
        let bytes = &bytes[r * stride..][..row_bytes];
        match compiled {
            // SAFETY: The CPU has the instruction set.
            Some(dequantize) => unsafe { dequantize(bytes, out) },
            None => portable(bytes, out),
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

#[cfg(test)]
mod tests {
    use super::activations::TOP;
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

    /// Products of rows with `n` columns, `[rows, n]`.
    fn multiply(isa: Isa, ty: GgmlType, bytes: &[u8], rows: usize, x: &[f32], k: usize) -> Vec<f32> {
        let mut columns = Columns::for_isa(isa, x, k);
        columns.prepare(ty);
        let mut out = vec![f32::NAN; rows * columns.n()];
        columns.multiply(ty, bytes, &mut out);
        out
    }

    /// By all instruction sets that this CPU has.
    #[test]
    fn products_of_every_format_are_those_of_the_reference() {
        for info in TYPES {
            let Some(quantize) = info.quantize else { continue };
            // A part of a chunk at the end, where blocks allow it, and a part of a run, where they hold one value.
            let k = 512 + if info.block_len == 1 { 21 } else { info.block_len.max(RUN) };
            let (rows, row_bytes) = (45, k / info.block_len * info.block_bytes);
            let mut bytes = vec![0; rows * row_bytes];
            let weights = noise(rows * k, 7);
            for (w, out) in weights.chunks_exact(k).zip(bytes.chunks_exact_mut(row_bytes)) {
                quantize(w, None, out);
            }
            let mut exact = vec![0.0; rows * k];
            info.dequantize.expect("formats with a quantiser have one")(&bytes, &mut exact);
            let x = noise(41 * k, 99);
            let half_step = |x: &[f32]| x.iter().fold(0.0f32, |m, v| m.max(v.abs())) / TOP / 2.0;
            // Half a step of each activation, plus the rounding error of f32 sums.
            let bounds: Vec<(f64, f64)> = (0..rows * 41)
                .map(|i| {
                    let (w, x) = (&exact[i / 41 * k..][..k], &x[i % 41 * k..][..k]);
                    let pairs = w.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b));
                    let runs = w.chunks(RUN).zip(x.chunks(RUN));
                    let rounded = runs.map(|(w, x)| half_step(x) * w.iter().map(|w| w.abs()).sum::<f32>());
                    let rounded: f32 = if info.codes.is_some() { rounded.sum() } else { 0.0 };
                    (pairs.clone().sum(), f64::from(rounded) * 1.01 + 1e-6 * pairs.map(f64::abs).sum::<f64>())
                })
                .collect();
            for isa in Isa::all() {
                let all = multiply(isa, info.ty, &bytes, rows, &x, k);
                for (i, (found, (exact, bound))) in all.iter().zip(&bounds).enumerate() {
                    let error = (f64::from(*found) - exact).abs();
                    assert!(error <= *bound, "{}, {}, value {i}: off by {error:e}", info.name, isa.name());
                }
                for n in [1, 2, 3, 4, 5, 9, 16, 17, 20] {
                    let some = multiply(isa, info.ty, &bytes, rows, &x[..n * k], k);
                    for (i, found) in some.iter().enumerate() {
                        let alone = all[i / n * 41 + i % n];
                        let what = (info.name, isa.name(), n, i);
                        assert_eq!(
                            found.to_bits(),
                            alone.to_bits(),
                            "{what:?}: the same for any number of columns"
                        );
                    }
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
        columns.prepare(GgmlType::Q8_0);
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
                columns.prepare(GgmlType::Q8_0);
                let mut out = [0.0];
                columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
                assert!(out[0].is_nan(), "{}", out[0]);
            }
        }
        let zeros = vec![0.0; 64];
        let mut columns = Columns::new(&zeros, 64);
        columns.prepare(GgmlType::Q8_0);
        let mut out = [1.0];
        columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
        assert_eq!(out[0], 0.0);
    }
}
