//! iq3_s: groups of 4 magnitudes from a codebook of 512, a sign bit per value, a 4-bit scale per 32.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use super::iq2_xxs::signed_magnitudes;
use super::iq3_xxs::TOPS;
use crate::blocks::codebook::IQ3_S_GRID;
use crate::blocks::grid::{Codebook, block_weights};
use crate::blocks::magnitudes::Magnitudes;
use crate::blocks::{Block, F16, QK_K, quantize_blocks};

/// `x[i] = d * (1 + 2 * scale[i / 32]) * magnitude[i] * sign[i]`.
#[repr(C)]
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
pub struct BlockIq3S {
    /// Scale of the scales.
    pub d: F16,
    /// Low eight bits of the codebook index of each 4 values.
    pub qs: [u8; QK_K / 4],
    /// Ninth bits of the codebook indices, eight in a byte.
    pub qh: [u8; QK_K / 32],
    /// Signs: bit `i % 8` of byte `i / 8`; a set bit is a minus.
    pub signs: [u8; QK_K / 8],
    /// Scales of 4 bits, two in a byte.
    pub scales: [u8; QK_K / 64],
}

const _: () = assert!(size_of::<BlockIq3S>() == 110);

impl Block for BlockIq3S {
    const N_ELEM: usize = QK_K;

    fn dequantize(&self, y: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, y) in y.chunks_exact_mut(4).enumerate() {
            let g = i / 8;
            let high = (self.qh[g] >> (i % 8)) & 1;
            let index = usize::from(self.qs[i]) | usize::from(high) << 8;
            let scale = (self.scales[g / 2] >> (4 * (g % 2))) & 15;
            let db = d * f32::from(1 + 2 * scale);
            signed_magnitudes(db, &IQ3_S_GRID[index], self.signs[i / 2] >> (4 * (i % 2)), y);
        }
    }

    fn is_valid(&self) -> bool {
        self.d.is_finite()
    }
}

const LEVELS: [f32; 8] = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0];

static SEARCH: LazyLock<Magnitudes<4>> = LazyLock::new(|| Magnitudes {
    codebook: Codebook::new(Magnitudes::entries(&IQ3_S_GRID, 1.0), &LEVELS, 3),
    group_len: 32,
    even_signs: false,
    tops: TOPS,
});

/// Searches scales and codes with the least weighted error.
pub(crate) fn quantize(row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    quantize_blocks(row, importance, out, |x, importance, block: &mut BlockIq3S| {
        let weight = block_weights(x, importance);
        let (fitted, signs) = SEARCH.fit(x, &weight);
        *block = BlockIq3S { d: fitted.d, signs, ..BlockIq3S::zeroed() };
        for g in 0..QK_K / 32 {
            let (scale, indices) = fitted.groups[g];
            block.scales[g / 2] |= scale << (4 * (g % 2));
            for (i, index) in indices.iter().enumerate() {
                let [low, high] = index.to_le_bytes();
                block.qs[8 * g + i] = low;
                block.qh[g] |= high << i;
            }
        }
    });
}
