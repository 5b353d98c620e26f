//! q3_K: 256 values as signed 3-bit steps, with a 6-bit scale per 16.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, Scales, pairs_of_bits};
use crate::blocks::search::{nearest_int, signed_extreme, sum_squares, symmetric, symmetric_by_sweeps};
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * (scale[i / 16] - 32) * (code[i] - 4)`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ3K {
    /// The third bits: bit `i / 32` of byte `i % 32` belongs to value `i`.
    pub hmask: [u8; QK_K / 8],
    /// The low two bits: byte `32 h + l` holds the values `128 h + 32 k + l` for k = 0..4, lowest bits first.
    pub qs: [u8; QK_K / 4],
    /// Sixteen scales of 6 bits: low four bits in the halves of bytes 0..8, high two bits in bytes 8..12.
    pub scales: [u8; 12],
    /// Scale of the scales.
    pub d: F16,
}

const _: () = assert!(size_of::<BlockQ3K>() == 110);

impl BlockQ3K {
    /// The scale of group `j` (0..16), from -32 to 31.
    pub fn scale(&self, j: usize) -> i8 {
        let low = (self.scales[j % 8] >> (4 * (j / 8))) & 15;
        let high = (self.scales[8 + j % 4] >> (2 * (j / 4))) & 3;
        (low | (high << 4)) as i8 - 32
    }
}

impl Block for BlockQ3K {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (e, y) in y.iter_mut().enumerate() {
            let (h, k, l) = (e / 128, e / 32 % 4, e % 32);
            let low = (self.qs[32 * h + l] >> (2 * k)) & 3;
            let high = (self.hmask[l] >> (e / 32)) & 1;
            let code = i32::from(low | (high << 2)) - 4;
            *y = d * f32::from(self.scale(e / 16)) * code as f32;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockQ3K {
    const GROUP: usize = 16;
    const BITS: u32 = 3;
    const ZERO: i16 = 4;
    const SCALES: Scales = Scales::Steps;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        let d = self.d.scale();
        pairs_of_bits(&self.qs, 4, code);
        for (k, code) in code.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            for l in 0..32 {
                code[l] += i16::from(((self.hmask[l] >> k) & 1) << 2);
            }
        }
        for (j, s) in scale.iter_mut().enumerate() {
            *s = d * f32::from(self.scale(j));
        }
    }

    fn steps(&self) -> [F16; 2] {
        [self.d, F16::default()]
    }
}

/// Searches the scale of each group, rounds the scales to 6 bits, and recomputes the codes.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockQ3K| {
        *block = BlockQ3K::zeroed();
        let mut code = [0u8; QK_K];
        let mut scales = [0f32; 16];
        let mut scale_codes = [0u8; 16];
        if let Some(w) = importance {
            let sigma2 = 2.0 * sum_squares(x) / QK_K as f32;
            let mut weights = [0f32; 16];
            for g in 0..16 {
                let group = 16 * g..16 * (g + 1);
                let (x, w) = (&x[group.clone()], &w[group.clone()]);
                let weight: [f32; 16] = std::array::from_fn(|j| w[j] * (sigma2 + x[j] * x[j]).sqrt());
                weights[g] = weight.iter().fold(0.0, |sum, w| sum + w);
                scales[g] = symmetric(4, x, &weight, &mut code[group]);
            }
            block.d = F16::from_f32(symmetric(32, &scales, &weights, &mut scale_codes));
        } else {
            for g in 0..16 {
                let group = 16 * g..16 * (g + 1);
                scales[g] = symmetric_by_sweeps(4, &x[group.clone()], &mut code[group]);
            }
            let max = signed_extreme(&scales);
            if max != 0.0 {
                let inverse = -32.0 / max;
                block.d = F16::from_f32(1.0 / inverse);
                scale_codes = scales.map(|s| (nearest_int(inverse * s).clamp(-32, 31) + 32) as u8);
            }
        }
        for (j, scale) in scale_codes.into_iter().enumerate() {
            block.scales[j % 8] |= (scale & 15) << (4 * (j / 8));
            block.scales[8 + j % 4] |= (scale >> 4) << (2 * (j / 4));
        }
        for g in 0..16 {
            let d = block.d.to_f32() * f32::from(block.scale(g));
            if d != 0.0 {
                for e in 16 * g..16 * (g + 1) {
                    code[e] = (nearest_int(x[e] / d).clamp(-4, 3) + 4) as u8;
                }
            }
        }
        for (e, code) in code.into_iter().enumerate() {
            block.hmask[e % 32] |= (code >> 2) << (e / 32);
            block.qs[32 * (e / 128) + e % 32] |= (code & 3) << (2 * (e / 32 % 4));
        }
    });
}
