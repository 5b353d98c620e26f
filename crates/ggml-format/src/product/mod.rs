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
