//! iq2_s: groups of 8 magnitudes from a codebook of 1024, a sign bit per value, a 4-bit scale per 16.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use super::iq2_xxs::{LEVELS, TOPS, signed_magnitudes};
use crate::blocks::codebook::IQ2_S_GRID;
use crate::blocks::grid::{Codebook, block_weights};
use crate::blocks::magnitudes::Magnitudes;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * (0.5 + scale[i / 16]) / 4 * magnitude[i] * sign[i]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq2S {
    /// Scale of the scales.
    pub d: F16,
    /// Low eight bits of the codebook index of each 8 values.
    pub qs: [u8; QK_K / 8],
    /// Signs of each 8 values: a set bit is a minus.
    pub signs: [u8; QK_K / 8],
    /// High two bits of the codebook indices, four in a byte.
    pub qh: [u8; QK_K / 32],
    /// Scales of 4 bits, two in a byte.
    pub scales: [u8; QK_K / 32],
}

const _: () = assert!(size_of::<BlockIq2S>() == 82);

impl Block for BlockIq2S {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, y) in y.chunks_exact_mut(8).enumerate() {
            let high = (self.qh[i / 4] >> (2 * (i % 4))) & 3;
            let index = usize::from(self.qs[i]) | usize::from(high) << 8;
            let scale = (self.scales[i / 4] >> (4 * (i / 2 % 2))) & 15;
            let db = d * (0.5 + f32::from(scale)) * 0.25;
            signed_magnitudes(db, &IQ2_S_GRID[index], self.signs[i], y);
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

static SEARCH: LazyLock<Magnitudes<8>> = LazyLock::new(|| Magnitudes {
    codebook: Codebook::new(Magnitudes::entries(&IQ2_S_GRID, 8.0), &LEVELS, 1),
    group_len: 16,
    even_signs: false,
    tops: TOPS,
});

/// Searches scales and codes with the least weighted error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq2S| {
        let weight = block_weights(x, importance);
        let (fitted, signs) = SEARCH.fit(x, &weight);
        *block = BlockIq2S { d: fitted.d, signs, ..BlockIq2S::zeroed() };
        for i in 0..QK_K / 8 {
            let (scale, indices) = fitted.groups[i / 2];
            let [low, high] = indices[i % 2].to_le_bytes();
            block.qs[i] = low;
            block.qh[i / 4] |= high << (2 * (i % 4));
            if i % 2 == 0 {
                block.scales[i / 4] |= scale << (4 * (i / 2 % 2));
            }
        }
    });
}
