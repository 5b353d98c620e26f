//! mxfp4: the OCP microscaling format, 32 FP4 (E2M1) values with a power-of-two scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, Scales, nibbles};
use crate::blocks::search::largest_magnitude;
use crate::blocks::{Block, quantize_blocks};

/// Twice the value of each E2M1 code, so that they are integers.
pub static E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// `x[i] = E2M1_DOUBLED[code[i]] * e8m0_half(e)`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockMxfp4 {
    /// Scale: the exponent of a power of two, with a bias of 127 (E8M0).
    pub e: u8,
    /// Codes: value `j` in the low half of byte `j`, value `j + 16` in the high half.
    pub qs: [u8; 16],
}

const _: () = assert!(size_of::<BlockMxfp4>() == 17);

/// Half of the E8M0 number `e`: 2^(e - 128), subnormal for 0 and 1.
pub fn e8m0_half(e: u8) -> f32 {
    f32::from_bits(if e < 2 { 0x0020_0000 << e } else { u32::from(e - 1) << 23 })
}

impl Block for BlockMxfp4 {
    const N_ELEM: usize = 32;

    fn dequantize(&self, y: &mut [f32]) {
        let d = e8m0_half(self.e);
        for j in 0..16 {
            y[j] = f32::from(E2M1_DOUBLED[usize::from(self.qs[j] & 15)]) * d;
            y[j + 16] = f32::from(E2M1_DOUBLED[usize::from(self.qs[j] >> 4)]) * d;
        }
    }

    fn is_valid(&self) -> bool {
        self.e != 255
    }
}

impl Coded for BlockMxfp4 {
    const GROUP: usize = 32;
    const TABLE: Option<&'static [i8; 16]> = Some(&E2M1_DOUBLED);
    const BITS: u32 = 4;
    const SCALES: Scales = Scales::Single;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        nibbles(&self.qs, 0, code);
        scale[0] = e8m0_half(self.e);
    }
}

/// Derives the scale from the exponent of the largest magnitude.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockMxfp4| {
        let max = largest_magnitude(x);
        block.e = if max > 0.0 { (max.log2().floor() - 2.0 + 127.0).clamp(0.0, 254.0) as u8 } else { 0 };
        let d = e8m0_half(block.e);
        block.qs = std::array::from_fn(|j| nearest_e2m1(x[j], d) | (nearest_e2m1(x[j + 16], d) << 4));
    });
}

/// The code whose value times `d` is nearest to `x`, the first one in a tie.
pub(super) fn nearest_e2m1(x: f32, d: f32) -> u8 {
    let mut best = 0;
    let mut best_error = f32::INFINITY;
    for (code, &v) in E2M1_DOUBLED.iter().enumerate() {
        let error = (f32::from(v) * d - x).abs();
        if error < best_error {
            (best, best_error) = (code as u8, error);
        }
    }
    best
}
