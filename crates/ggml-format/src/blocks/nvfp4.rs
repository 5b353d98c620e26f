//! nvfp4: 64 FP4 (E2M1) values with an 8-bit float (UE4M3) scale per 16.

use bytemuck::{Pod, Zeroable};

use super::mxfp4::{E2M1_DOUBLED, nearest_e2m1};
use crate::blocks::codes::Coded;
use crate::blocks::search::largest_magnitude;
use crate::blocks::{Block, quantize_blocks};

/// `x[i] = E2M1_DOUBLED[code[i]] * ue4m3_half(d[i / 16])`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockNvfp4 {
    /// Scales of the four groups of 16, as unsigned E4M3 floats.
    pub d: [u8; 4],
    /// Codes: 8 bytes per group; value `j` in the low half of byte `j`, value `j + 8` in the high half.
    pub qs: [u8; 32],
}

const _: () = assert!(size_of::<BlockNvfp4>() == 36);

/// Half of the UE4M3 number `u`; 0 for 0 and for 127, which would be NaN.
pub fn ue4m3_half(u: u8) -> f32 {
    if u == 0 || u == 0x7f {
        return 0.0;
    }
    let (exponent, mantissa) = (i32::from(u >> 3) & 15, f32::from(u & 7));
    let value = if exponent == 0 {
        mantissa * (-9f32).exp2()
    } else {
        (1.0 + mantissa / 8.0) * ((exponent - 7) as f32).exp2()
    };
    value * 0.5
}

impl Block for BlockNvfp4 {
    const N_ELEM: usize = 64;

    fn dequantize(&self, y: &mut [f32]) {
        for g in 0..4 {
            let d = ue4m3_half(self.d[g]);
            for j in 0..8 {
                let code = self.qs[8 * g + j];
                y[16 * g + j] = f32::from(E2M1_DOUBLED[usize::from(code & 15)]) * d;
                y[16 * g + j + 8] = f32::from(E2M1_DOUBLED[usize::from(code >> 4)]) * d;
            }
        }
    }
}

impl Coded for BlockNvfp4 {
    const GROUP: usize = 16;
    const TABLE: Option<&'static [i8; 16]> = Some(&E2M1_DOUBLED);

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        for (g, (code, s)) in code.chunks_exact_mut(16).zip(scale).enumerate() {
            for (i, q) in self.qs[8 * g..][..8].iter().enumerate() {
                code[i] = i16::from(q & 15);
                code[8 + i] = i16::from(q >> 4);
            }
            *s = ue4m3_half(self.d[g]);
        }
    }
}

/// Scales each group so that its largest magnitude becomes 6, the largest E2M1 value.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, _, block: &mut BlockNvfp4| {
        for g in 0..4 {
            let x = &x[16 * g..][..16];
            block.d[g] = to_ue4m3(largest_magnitude(x) / 6.0);
            let d = ue4m3_half(block.d[g]);
            for j in 0..8 {
                block.qs[8 * g + j] = nearest_e2m1(x[j], d) | (nearest_e2m1(x[j + 8], d) << 4);
            }
        }
    });
}

/// The nearest UE4M3 number, halves rounded up, at most 448.
fn to_ue4m3(x: f32) -> u8 {
    if x.is_nan() || x <= 0.0 {
        return 0;
    }
    let x = x.min(448.0);
    let bits = x.to_bits();
    let exponent = (bits >> 23) as i32 - 127 + 7;
    if exponent <= 0 {
        return match (x * 512.0 + 0.5) as u8 {
            0 => 0,
            mantissa => mantissa.min(7),
        };
    }
    // Three bits of mantissa are kept; the carry of rounding up reaches the exponent by itself.
    let mantissa = ((bits >> 19) & 15).div_ceil(2);
    ((exponent as u32 * 8 + mantissa).min(0x7e)) as u8
}
