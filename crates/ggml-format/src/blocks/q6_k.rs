//! q6_K: 256 values as signed 6-bit steps, with an 8-bit scale per 16.

use bytemuck::{Pod, Zeroable};

use crate::blocks::codes::{Coded, Scales};
use crate::blocks::search::{EPSILON, nearest_int, signed_extreme, symmetric};
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * scales[i / 16] * (code[i] - 32)`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockQ6K {
    /// The low four bits: byte `64 h + 32 (k % 2) + l`, half `k / 2`, belongs to value `128 h + 32 k + l`.
    pub ql: [u8; QK_K / 2],
    /// The high two bits: byte `32 h + l`, bits `2k..2k+2`, belong to value `128 h + 32 k + l`.
    pub qh: [u8; QK_K / 4],
    /// Signed scales.
    pub scales: [i8; QK_K / 16],
    /// Scale of the scales.
    pub d: F16,
}

const _: () = assert!(size_of::<BlockQ6K>() == 210);

impl Block for BlockQ6K {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (e, y) in y.iter_mut().enumerate() {
            let (h, k, l) = (e / 128, e / 32 % 4, e % 32);
            let low = (self.ql[64 * h + 32 * (k % 2) + l] >> (4 * (k / 2))) & 15;
            let high = (self.qh[32 * h + l] >> (2 * k)) & 3;
            let code = i32::from(low | (high << 4)) - 32;
            *y = d * f32::from(self.scales[e / 16]) * code as f32;
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockQ6K {
    const GROUP: usize = 16;
    const BITS: u32 = 6;
    const ZERO: i16 = 32;
    const SCALES: Scales = Scales::Steps;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        let d = self.d.scale();
        let (low, high) = (self.ql.as_chunks::<32>().0, self.qh.as_chunks::<32>().0);
        for (i, code) in code.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (h, k) = (i / 4, i % 4);
            let (low, high) = (&low[2 * h + k % 2], &high[h]);
            for l in 0..32 {
                let low = (low[l] >> (4 * (k / 2))) & 15;
                code[l] = i16::from(low | ((high[l] >> (2 * k)) & 3) << 4) - 32;
            }
        }
        scale.iter_mut().zip(self.scales).for_each(|(s, v)| *s = d * f32::from(v));
    }

    fn steps(&self) -> [F16; 2] {
        [self.d, F16::default()]
    }
}

/// Searches the scale of each group, rounds the scales, and recomputes the codes.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockQ6K| {
        *block = BlockQ6K::zeroed();
        let mut code = [0u8; QK_K];
        let mut scales = [0f32; 16];
        for g in 0..16 {
            let x = &x[16 * g..][..16];
            let weight: [f32; 16] = match importance {
                Some(w) => std::array::from_fn(|j| w[16 * g + j]),
                None => std::array::from_fn(|j| x[j] * x[j]),
            };
            scales[g] = symmetric(32, x, &weight, &mut code[16 * g..][..16]);
        }
        let max = signed_extreme(&scales);
        if max.abs() < EPSILON {
            return;
        }
        let inverse = -128.0 / max;
        block.d = F16::from_f32(1.0 / inverse);
        for g in 0..16 {
            block.scales[g] = nearest_int(inverse * scales[g]).min(127) as i8;
            let d = block.d.to_f32() * f32::from(block.scales[g]);
            if d != 0.0 {
                for e in 16 * g..16 * (g + 1) {
                    code[e] = (nearest_int(x[e] / d).clamp(-32, 31) + 32) as u8;
                }
            }
        }
        for (e, code) in code.into_iter().enumerate() {
            let (h, k, l) = (e / 128, e / 32 % 4, e % 32);
            block.ql[64 * h + 32 * (k % 2) + l] |= (code & 15) << (4 * (k / 2));
            block.qh[32 * h + l] |= (code >> 4) << (2 * k);
        }
    });
}
