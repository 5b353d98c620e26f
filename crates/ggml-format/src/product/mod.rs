//! Matrix multiplication on the CPU: activations are rounded to 16-bit integers with a scale per 32 values,
//! and integer products are taken with the codes of the weights. Formats without codes are multiplied as f32.
//!
//! The same code is compiled for several instruction sets, and the best that the CPU has is used ([`Isa`]).

mod activations;
mod kernels;
mod lanes;
#[cfg(not(target_arch = "wasm32"))]
mod packed;
mod portable;
mod vectors;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::borrow::Cow;

pub use activations::Part;
#[cfg(not(target_arch = "wasm32"))]
use activations::Run;
use activations::{Data, division};
use kernels::Job;
use lanes::{Lanes, RUN};
#[cfg(not(target_arch = "wasm32"))]
pub use packed::{Line, Packed, TILE_ROWS};
use portable::Portable;
pub use vectors::{add_weighted, exp_of_scores, swiglu};

pub use crate::blocks::isa::Isa;
use crate::types::GgmlType;

/// Forms of the columns of a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// As integers, several columns interleaved.
    Rounded,
    /// As they are, several columns interleaved.
    Plain,
    /// As integers, one by one.
    RoundedSingle,
    /// As they are, one by one.
    PlainSingle,
}

impl Form {
    fn rounds(self) -> bool {
        matches!(self, Form::Rounded | Form::RoundedSingle)
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Isa {
    /// True if products of tiles take activations in bytes.
    fn takes_bytes(self) -> bool {
        match self {
            Isa::Portable => false,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => false,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => true,
        }
    }
}

/// Activations, as columns of `k` values.
#[derive(Debug)]
pub struct Columns<'a> {
    isa: Isa,
    k: usize,
    /// `[n, k]`
    x: &'a [f32],
    /// In each form that was prepared.
    parts: [Vec<Part>; 4],
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
        Columns { isa, k, x, parts: Default::default() }
    }

    /// Number of columns.
    pub fn n(&self) -> usize {
        self.x.len() / self.k.max(1)
    }

    /// The values of the columns.
    pub fn x(&self) -> &'a [f32] {
        self.x
    }

    /// The form that products with blocks of a type take.
    pub fn form(&self, ty: GgmlType) -> Form {
        if ty.info().codes.is_some() && self.k % RUN == 0 { Form::Rounded } else { Form::Plain }
    }

    fn parts(&self, form: Form) -> &[Part] {
        &self.parts[form as usize]
    }

    /// Number of parts to prepare in a form, in any order or in parallel; 0 if they are prepared.
    pub fn unprepared(&self, form: Form) -> usize {
        if self.parts(form).is_empty() { self.division(form).count() } else { 0 }
    }

    fn division(&self, form: Form) -> impl Iterator<Item = (usize, usize, usize)> {
        let lanes = match self.isa {
            _ if matches!(form, Form::RoundedSingle | Form::PlainSingle) => 1,
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
    pub fn part(&self, form: Form, i: usize) -> Part {
        let (first, n, lanes) = self.division(form).nth(i).expect("a part of the columns");
        let x = &self.x[first * self.k..][..n * self.k];
        #[cfg(not(target_arch = "wasm32"))]
        if form == Form::RoundedSingle {
            let in_bytes = self.isa.takes_bytes();
            let runs = x.as_chunks().0.iter().map(|x| Run::new(x, in_bytes)).collect();
            return Part { first, n, lanes, data: Data::Runs(runs) };
        }
        Part::new((first, n, lanes), x, self.k, form.rounds())
    }

    /// Takes all parts, in order.
    pub fn set_parts(&mut self, form: Form, parts: Vec<Part>) {
        self.parts[form as usize] = parts;
    }

    /// Prepares all parts, unless they are prepared.
    pub fn prepare(&mut self, form: Form) {
        let n = self.unprepared(form);
        if n > 0 {
            self.set_parts(form, (0..n).map(|i| self.part(form, i)).collect());
        }
    }

    /// Multiplies with the contiguous rows in `bytes`: `out[r * n + c]`, for as many rows as fit in `out`. The columns
    /// are prepared in [`Self::form`].
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
        let form = self.form(ty);
        assert!(self.unprepared(form) == 0, "the columns are not prepared");
        let parts = self.parts(form);
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
        columns.prepare(columns.form(ty));
        let mut out = vec![f32::NAN; rows * columns.n()];
        columns.multiply(ty, bytes, &mut out);
        out
    }

    /// The same of rows in tiles, in two parts.
    fn packed(isa: Isa, ty: GgmlType, bytes: &[u8], rows: usize, x: &[f32], k: usize) -> Option<Vec<f32>> {
        let row_bytes = bytes.len() / rows;
        let weights = Packed::new(ty, k, rows, |n_line, lines| {
            let tiles = lines.chunks_exact_mut(n_line);
            for (tile, bytes) in tiles.zip(bytes.chunks(TILE_ROWS * row_bytes)) {
                Packed::pack(ty, k, bytes, tile);
            }
        })?;
        let mut columns = Columns::for_isa(isa, x, k);
        columns.prepare(weights.form());
        let mut out = vec![f32::NAN; rows * columns.n()];
        let (first, second) = out.split_at_mut(TILE_ROWS * columns.n());
        columns.multiply_packed(&weights, 0, first);
        columns.multiply_packed(&weights, TILE_ROWS, second);
        Some(out)
    }

    /// By all instruction sets that this CPU has.
    #[test]
    fn products_of_every_format_are_those_of_the_reference() {
        let mut n_packed = 0;
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
                if let Some(packed) = packed(isa, info.ty, &bytes, rows, &x, k) {
                    assert_eq!(packed.len(), all.len());
                    for (i, (found, of_blocks)) in packed.iter().zip(&all).enumerate() {
                        let what = (info.name, isa.name(), i);
                        assert_eq!(found.to_bits(), of_blocks.to_bits(), "{what:?}: the same from tiles");
                    }
                    n_packed += 1;
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
        assert_eq!(n_packed, 13 * Isa::all().count(), "formats in tiles");
    }

    #[test]
    fn tiles_of_floats_give_what_rows_give() {
        let (rows, k) = (45, 96);
        let x = noise(13 * k, 5);
        for ty in [GgmlType::F16, GgmlType::BF16] {
            let mut bytes = vec![0; rows * k * 2];
            (ty.info().quantize.expect("it has one"))(&noise(rows * k, 3), None, &mut bytes);
            for isa in Isa::all() {
                let of_rows = multiply(isa, ty, &bytes, rows, &x, k);
                // Where tiles would be slower there are none.
                let Some(of_tiles) = packed(isa, ty, &bytes, rows, &x, k) else {
                    assert_eq!(Isa::best(), Isa::Portable);
                    continue;
                };
                assert_eq!(of_tiles.len(), of_rows.len());
                for (i, (found, of_rows)) in of_tiles.iter().zip(&of_rows).enumerate() {
                    assert_eq!(found.to_bits(), of_rows.to_bits(), "{ty}, {}, value {i}", isa.name());
                }
            }
        }
    }

    #[test]
    fn tiles_are_as_large_as_blocks() {
        for info in TYPES {
            let Some(n_byte) = Packed::n_byte_of(info.ty, 4096, 160) else { continue };
            let of_blocks = 160 * 4096 / info.block_len * info.block_bytes;
            // Scales of four bits are a byte in a tile, and MXFP4's of a byte four.
            let more = if [GgmlType::Q2_K, GgmlType::MXFP4].contains(&info.ty) { 1.2 } else { 1.06 };
            assert!((n_byte as f64) < more * of_blocks as f64, "{}: {n_byte} for {of_blocks}", info.name);
        }
        assert_eq!(Packed::n_byte_of(GgmlType::Q4_K, 256 + 32, 1), None);
        assert_eq!(Packed::n_byte_of(GgmlType::IQ2_XXS, 256, 1), None);
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
        columns.prepare(Form::Rounded);
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
                columns.prepare(Form::Rounded);
                let mut out = [0.0];
                columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
                assert!(out[0].is_nan(), "{}", out[0]);
            }
        }
        let zeros = vec![0.0; 64];
        let mut columns = Columns::new(&zeros, 64);
        columns.prepare(Form::Rounded);
        let mut out = [1.0];
        columns.multiply(GgmlType::Q8_0, &bytes, &mut out);
        assert_eq!(out[0], 0.0);
    }
}
