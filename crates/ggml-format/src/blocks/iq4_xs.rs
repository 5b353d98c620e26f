//! iq4_xs: the values of iq4_nl with a 6-bit scale per 32 of 256.

use bytemuck::{Pod, Zeroable};

use super::iq4_nl::{IQ4_NL_VALUES, best_scale, dequantize_codes, nearest_code, pack};
use crate::blocks::codes::{Coded, Scales, nibbles};
use crate::blocks::search::{nearest_int, signed_extreme, square_weights, sum_squares};
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * (scale[i / 32] - 32) * IQ4_NL_VALUES[code[i]]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq4Xs {
    /// Scale of scales.
    pub d: F16,
    /// High two bits of the eight scales, group 0 in the lowest bits of this little-endian u16.
    pub scales_h: [u8; 2],
    /// Low four bits of the scales, two in a byte.
    pub scales_l: [u8; 4],
    /// Codes: 16 bytes per group, ordered as in iq4_nl.
    pub qs: [u8; QK_K / 2],
}

const _: () = assert!(size_of::<BlockIq4Xs>() == 136);

impl BlockIq4Xs {
    /// The scale of group `g` (0..8), from -32 to 31.
    pub fn scale(&self, g: usize) -> i32 {
        let low = (self.scales_l[g / 2] >> (4 * (g % 2))) & 15;
        let high = (u16::from_le_bytes(self.scales_h) >> (2 * g)) & 3;
        (i32::from(low) | i32::from(high) << 4) - 32
    }
}

impl Block for BlockIq4Xs {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for g in 0..8 {
            let scale = self.scale(g) as f32;
            dequantize_codes(d * scale, &self.qs[16 * g..][..16], &mut y[32 * g..][..32]);
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

impl Coded for BlockIq4Xs {
    const GROUP: usize = 32;
    const TABLE: Option<&'static [i8; 16]> = Some(&IQ4_NL_VALUES);
    const BITS: u32 = 4;
    const SCALES: Scales = Scales::Steps;

    #[inline(always)]
    fn codes(&self, code: &mut [i16], scale: &mut [f32], _: &mut [f32]) {
        let d = self.d.scale();
        for (g, (code, s)) in code.chunks_exact_mut(32).zip(scale).enumerate() {
            nibbles(&self.qs[16 * g..][..16], 0, code);
            *s = d * self.scale(g) as f32;
        }
    }

    fn steps(&self) -> [F16; 2] {
        [self.d, F16::default()]
    }
}

/// Like iq4_nl for each group; then the scales are rounded and the codes recomputed.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq4Xs| {
        let sigma2 = sum_squares(x) * 2.0 / QK_K as f32;
        let weight = square_weights::<QK_K>(x, importance, sigma2);
        let scales: [f32; 8] =
            std::array::from_fn(|g| best_scale(&x[32 * g..][..32], &weight[32 * g..][..32]));
        let d = -signed_extreme(&scales) / 32.0;
        let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
        *block = BlockIq4Xs::zeroed();
        block.d = F16::from_f32(d);
        let mut high = 0u16;
        for g in 0..8 {
            let scale = nearest_int(inverse * scales[g]).clamp(-32, 31);
            let group_d = d * scale as f32;
            let group_inverse = if group_d != 0.0 { 1.0 / group_d } else { 0.0 };
            let code = std::array::from_fn(|j| nearest_code(group_inverse * x[32 * g + j]));
            block.qs[16 * g..][..16].copy_from_slice(&pack(&code));
            let stored = (scale + 32) as u16;
            block.scales_l[g / 2] |= ((stored & 15) << (4 * (g % 2))) as u8;
            high |= (stored >> 4) << (2 * g);
        }
        block.scales_h = high.to_le_bytes();
    });
}
