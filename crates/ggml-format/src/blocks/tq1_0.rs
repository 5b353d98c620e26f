//! tq1_0: 256 ternary values, five per byte, times one scale.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::Coded;
use crate::blocks::search::largest_magnitude;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = trit[i] * d` with trits -1, 0 and 1.
///
/// A byte holds a fraction of 256: multiplied by a power of three modulo 256 and then by 3, its upper byte is
/// a trit.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockTq1_0 {
    /// The first 240 values, five per byte: 5 x 32 values in 32 bytes, then 5 x 16 in 16.
    pub qs: [u8; 48],
    /// The last 16 values, four per byte.
    pub qh: [u8; 4],
    /// Scale.
    pub d: F16,
}

const _: () = assert!(size_of::<BlockTq1_0>() == 54);

/// Runs of bytes with the same layout: first byte, bytes, trits per byte, first value.
const RUNS: [(usize, usize, usize, usize); 3] = [(0, 32, 5, 0), (32, 16, 5, 160), (48, 4, 4, 240)];

const POW3: [u8; 5] = [1, 3, 9, 27, 81];

impl Block for BlockTq1_0 {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        let bytes = bytemuck::bytes_of(self);
        for (first, n_byte, n_trit, start) in RUNS {
            for n in 0..n_trit {
                for m in 0..n_byte {
                    let shifted = bytes[first + m].wrapping_mul(POW3[n]);
                    let trit = (i32::from(shifted) * 3) >> 8;
                    y[start + n * n_byte + m] = (trit - 1) as f32 * d;
                }
            }
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockTq1_0 {
    const GROUP: usize = 32;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        let bytes = bytemuck::bytes_of(self);
        for (first, n_byte, n_trit, start) in RUNS {
            for (n, code) in code[start..][..n_trit * n_byte].chunks_exact_mut(n_byte).enumerate() {
                for (c, b) in code.iter_mut().zip(&bytes[first..][..n_byte]) {
                    *c = ((u16::from(b.wrapping_mul(POW3[n])) * 3) >> 8) as i16 - 1;
                }
            }
        }
        scale.fill(self.d.scale());
    }
}

/// Rounds to -1, 0 and 1 times the largest magnitude.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockTq1_0| {
        let d = largest_magnitude(x);
        let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
        block.d = F16::from_f32(d);
        let bytes = bytemuck::bytes_of_mut(block);
        for (first, n_byte, n_trit, start) in RUNS {
            for m in 0..n_byte {
                // The first trit is the most significant of five; a missing fifth one counts as zero.
                let mut sum = 0u32;
                for n in 0..5 {
                    let trit = if n < n_trit {
                        (((x[start + n * n_byte + m] * inverse).round() as i32).clamp(-1, 1) + 1) as u32
                    } else {
                        0
                    };
                    sum = sum * 3 + trit;
                }
                bytes[first + m] = (sum * 256).div_ceil(243) as u8;
            }
        }
    });
}
