//! iq1_m: like iq1_s, with a 3-bit scale per 16 and a shift per 8; the scale of scales is stored in spare
//! bits.

use bytemuck::{Pod, Zeroable};

use super::iq1_s::{DELTA, FACTORS, encode_vector};
use crate::blocks::codebook::IQ1_S_GRID;
use crate::blocks::grid::{Search, block_weights, fit};
use crate::blocks::search::mean_square;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * (2 * scale[i / 16] + 1) * (ternary[i] + delta[i / 8])`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq1M {
    /// Low eight bits of the codebook index of each 8 values.
    pub qs: [u8; QK_K / 8],
    /// Half a byte per 8 values: high three bits of the index, and the sign of the shift (set for negative).
    pub qh: [u8; QK_K / 16],
    /// Four little-endian u16: four 3-bit scales each, and a part of `d` in the top four bits.
    pub scales: [[u8; 2]; 4],
}

const _: () = assert!(size_of::<BlockIq1M>() == 56);

impl BlockIq1M {
    /// The scale of scales, assembled from the top bits of the four words of scales.
    pub fn d(&self) -> F16 {
        let bits =
            self.scales.iter().rev().fold(0u16, |bits, &s| (bits << 4) | (u16::from_le_bytes(s) >> 12));
        F16(bits.to_le_bytes())
    }
}

impl Block for BlockIq1M {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d().to_f32();
        for (i, y) in y.chunks_exact_mut(8).enumerate() {
            let nibble = (self.qh[i / 2] >> (4 * (i % 2))) & 15;
            let index = usize::from(self.qs[i]) | usize::from(nibble & 7) << 8;
            let delta = if nibble & 8 != 0 { -DELTA } else { DELTA };
            let g = i / 2;
            let scale = (u16::from_le_bytes(self.scales[g / 4]) >> (3 * (g % 4))) & 7;
            let scale = d * f32::from(2 * scale + 1);
            for (y, &ternary) in y.iter_mut().zip(&IQ1_S_GRID[index]) {
                *y = scale * (f32::from(ternary) + delta);
            }
        }
    }

    fn is_valid(&self) -> bool {
        self.d().is_finite()
    }
}

/// Like iq1_s; each vector takes the better shift.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq1M| {
        let weight = block_weights(x, importance);
        let (vectors, _) = x.as_chunks::<8>();
        let (weights, _) = weight.as_chunks::<8>();
        let encode = |g: usize, scale: f32| {
            let [first, second] = [2 * g, 2 * g + 1].map(|i| {
                let [up, down] = [DELTA, -DELTA].map(|shift| {
                    let (sums, index) = encode_vector(&vectors[i], &weights[i], scale, shift);
                    (sums, (index, shift < 0.0))
                });
                if down.0.error(scale) < up.0.error(scale) { down } else { up }
            });
            (first.0.join(second.0), [first.1, second.1])
        };
        let first: [f32; 16] = std::array::from_fn(|g| mean_square(&x[16 * g..16 * (g + 1)]).sqrt());
        let fitted = fit(Search { n_scale: 8, first: &first, factors: FACTORS }, encode);
        *block = BlockIq1M::zeroed();
        let mut scales = [0u16; 4];
        for (k, scales) in scales.iter_mut().enumerate() {
            *scales = (u16::from_le_bytes(fitted.d.0) >> (4 * k)) << 12;
        }
        for g in 0..16 {
            let (scale, codes) = fitted.groups[g];
            scales[g / 4] |= u16::from(scale) << (3 * (g % 4));
            for (l, (index, is_down)) in codes.into_iter().enumerate() {
                let [low, high] = index.to_le_bytes();
                block.qs[2 * g + l] = low;
                block.qh[g] |= (high | u8::from(is_down) << 3) << (4 * l);
            }
        }
        block.scales = scales.map(u16::to_le_bytes);
    });
}
