//! f32, f16, bf16 and f64: one value is one block.

use bytemuck::{Pod, Zeroable};

#[cfg(target_arch = "x86_64")]
use crate::blocks::isa::Compiled;
use crate::blocks::{Block, F16, quantize_blocks};
#[cfg(target_arch = "x86_64")]
use crate::types::DequantizeFor;

/// One f32.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct ValueF32(pub [u8; 4]);

/// One half float.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct ValueF16(pub F16);

/// One bfloat16: the upper half of an f32.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct ValueBf16(pub [u8; 2]);

/// One f64.
#[repr(transparent)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct ValueF64(pub [u8; 8]);

impl Block for ValueF32 {
    const N_ELEM: usize = 1;

    #[inline(always)]
    fn dequantize(&self, y: &mut [f32]) {
        y[0] = f32::from_le_bytes(self.0);
    }

    fn is_valid(&self) -> bool {
        f32::from_le_bytes(self.0).is_finite()
    }
}

impl Block for ValueF16 {
    const N_ELEM: usize = 1;

    #[inline(always)]
    fn dequantize(&self, y: &mut [f32]) {
        y[0] = self.0.to_f32();
    }

    fn is_valid(&self) -> bool {
        self.0.is_finite()
    }
}

impl ValueBf16 {
    /// The exact value.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes(self.0)) << 16)
    }

    /// The nearest bfloat16, ties to even; a NaN stays NaN and becomes quiet.
    pub fn from_f32(x: f32) -> ValueBf16 {
        let bits = x.to_bits();
        let upper = if x.is_nan() {
            (bits >> 16) | 0x40
        } else {
            // Adding 0x7fff, or 0x8000 if the kept part is odd, carries exactly when rounding up is correct.
            (bits + 0x7fff + ((bits >> 16) & 1)) >> 16
        };
        ValueBf16((upper as u16).to_le_bytes())
    }
}

impl Block for ValueBf16 {
    const N_ELEM: usize = 1;

    #[inline(always)]
    fn dequantize(&self, y: &mut [f32]) {
        y[0] = self.to_f32();
    }

    fn is_valid(&self) -> bool {
        self.to_f32().is_finite()
    }
}

impl Block for ValueF64 {
    const N_ELEM: usize = 1;

    fn dequantize(&self, y: &mut [f32]) {
        y[0] = f64::from_le_bytes(self.0) as f32;
    }

    fn is_valid(&self) -> bool {
        f64::from_le_bytes(self.0).is_finite()
    }
}

/// The dequantiser of f16 by instructions that convert.
#[cfg(target_arch = "x86_64")]
pub(crate) const F16_COMPILED: Compiled<DequantizeFor> =
    Compiled { avx2: conversions::f16_by_8, avx512: conversions::f16_by_16 };

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that a CPU may lack are unsafe")]
mod conversions {
    use std::arch::x86_64::*;

    use super::ValueF16;
    use crate::blocks::dequantize_blocks;
    use crate::blocks::isa::{with_avx2, with_avx512};

    with_avx2! {
        pub(super) fn f16_by_8(bytes: &[u8], y: &mut [f32]) {
            let ((whole, rest), (to, to_rest)) = (bytes.as_chunks::<16>(), y.as_chunks_mut::<8>());
            for (from, to) in whole.iter().zip(to) {
                // SAFETY: The arrays have as many bytes as are loaded and stored.
                unsafe {
                    _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())))
                }
            }
            dequantize_blocks::<ValueF16>(rest, to_rest);
        }
    }

    with_avx512! {
        pub(super) fn f16_by_16(bytes: &[u8], y: &mut [f32]) {
            let ((whole, rest), (to, to_rest)) = (bytes.as_chunks::<32>(), y.as_chunks_mut::<16>());
            for (from, to) in whole.iter().zip(to) {
                // SAFETY: As above.
                unsafe {
                    _mm512_storeu_ps(to.as_mut_ptr(), _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())))
                }
            }
            dequantize_blocks::<ValueF16>(rest, to_rest);
        }
    }
}

/// Stores f32 unchanged.
pub(crate) fn quantize_f32(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, y: &mut ValueF32| y.0 = x[0].to_le_bytes());
}

/// Rounds to half floats.
pub(crate) fn quantize_f16(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, y: &mut ValueF16| y.0 = F16::from_f32(x[0]));
}

/// Rounds to bfloat16.
pub(crate) fn quantize_bf16(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, y: &mut ValueBf16| *y = ValueBf16::from_f32(x[0]));
}
